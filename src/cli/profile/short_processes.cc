#include "short_processes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "../../aggregate/thread_amounts.h"
#include "absl/container/flat_hash_map.h"
#include "costs.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/stack.h"

namespace strobe::internal {
namespace {

constexpr ValueType kSamples{"samples", "count"};
constexpr ValueType kCpu{"cpu", "nanoseconds"};

std::optional<std::size_t> ColumnOf(const Profile& profile, const ValueType& type) {
  const auto at = std::ranges::find(profile.value_types, type);
  if (at == profile.value_types.end()) return std::nullopt;
  return static_cast<std::size_t>(at - profile.value_types.begin());
}

bool IsResidual(const Profile& profile, const ProfileSample& sample) {
  if (sample.stack == 0) return false;
  const Frame& leaf = profile.frames[profile.stacks[sample.stack].frame];
  return leaf.is_pseudo() && leaf.address == static_cast<Address>(PseudoFrame::kResidual);
}

class ShortProcesses {
 public:
  // Adds its rows if the process is short.
  void Add(Profile& profile) {
    const std::optional<std::size_t> samples = ColumnOf(profile, kSamples);
    const std::optional<std::size_t> cpu = ColumnOf(profile, kCpu);
    if (!samples || !cpu || profile.period <= 0 || profile.period_type != kCpu) return;
    const std::int64_t least = kEnoughSamples * profile.period;
    const std::int64_t used_ns = ColumnSum(profile, *cpu);
    if (used_ns <= 0 || used_ns >= least) return;
    least_ = std::max(least_, least);
    const auto account = static_cast<std::uint32_t>(processes_.size());
    const std::uint32_t pool =
        pools_.try_emplace(profile.program, static_cast<std::uint32_t>(pools_.size()))
            .first->second;
    processes_.push_back({&profile, *cpu, rows_.size()});
    std::int64_t rest = 0;  // what the clock has more than samples have been taken
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const std::int64_t count = profile.Values(i)[*samples];
      const bool is_residual = IsResidual(profile, profile.samples[i]);
      if (!is_residual && count <= 0) continue;  // such as [lost]
      rest += profile.Values(i)[*cpu] - (is_residual ? 0 : count);
      rows_.push_back({account, pool, is_residual});
      counts_.push_back(is_residual ? 0 : count);
      places_.push_back(i);
    }
    rows_.push_back({account, pool, /*is_residual=*/true});
    counts_.push_back(rest);
    places_.push_back(kNowhere);
  }

  void Divide() {
    if (processes_.size() < 2) return;
    DivideResiduals(rows_, counts_, std::array{least_});
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const std::size_t end =
          i + 1 < processes_.size() ? processes_[i + 1].first_row : rows_.size();
      Change(processes_[i], end);
    }
  }

 private:
  static constexpr std::size_t kNowhere = SIZE_MAX;
  struct Process {
    Profile* profile = nullptr;
    std::size_t cpu = 0;        // the column
    std::size_t first_row = 0;  // index into rows_; the last one is the rest
  };

  // Moments keep their part of their row.
  void Change(const Process& process, std::size_t end) {
    Profile& profile = *process.profile;
    const std::size_t width = profile.value_types.size();
    const std::int64_t rest = counts_[end - 1];
    // Only a process without a sample keeps a rest: all of its rows are [residual].
    if (rest != 0) return;
    std::vector<Division> divisions(profile.moments.empty() ? 0 : profile.samples.size());
    for (std::size_t row = process.first_row; row < end - 1; ++row) {
      std::int64_t& value = profile.values[places_[row] * width + process.cpu];
      if (!divisions.empty()) {
        divisions[places_[row]] = {.whole = static_cast<std::uint64_t>(counts_[row]),
                                   .parts = static_cast<std::uint64_t>(value)};
      }
      value = counts_[row];
    }
    for (std::size_t i = 0; i < profile.moments.size(); ++i) {
      Division& division = divisions[profile.moments[i].sample];
      std::int64_t& value = profile.moment_values[i * width + process.cpu];
      if (division.parts != 0) value = division.Next(value);
    }
  }

  absl::flat_hash_map<std::string_view, std::uint32_t> pools_;  // by program
  std::vector<Process> processes_;
  std::vector<AmountRow> rows_;
  std::vector<std::int64_t> counts_;  // of samples; then nanoseconds
  std::vector<std::size_t> places_;   // of each row: index into its profile's samples
  std::int64_t least_ = 0;
};

}  // namespace

void PoolShortProcesses(std::span<LoadedProfile* const> processes) {
  ShortProcesses all;
  for (LoadedProfile* const loaded : processes) all.Add(loaded->profile);
  all.Divide();
}

}  // namespace strobe::internal
