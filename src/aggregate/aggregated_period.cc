#include "strobe/aggregate/aggregated_period.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "merged_labels.h"
#include "merged_stacks.h"
#include "strobe/aggregate/zone_frames.h"
#include "strobe/core/stack.h"
#include "thread_amounts.h"

namespace strobe {
namespace {

constexpr std::uint32_t kNone = internal::MergedLabels::kNone;

// Turns a period into a profile.
class Conversion {
 public:
  explicit Conversion(const AggregatedPeriod& period)
      : period_(period), stacks_(period.trie, period.modules), labels_(period) {}

  void Run(Profile& profile) {
    MergeRows();
    if (period_.moments.size() != 0) sampled_ = values_;
    DivideAmounts();
    WriteStacks(profile);
    WriteFramesAndModules(profile);
    WriteThreads(profile);
    WriteSamples(profile);
    WriteMoments(profile);
    profile.stats.sums_cut += sums_cut_;
  }

 private:
  struct MergedRow {
    std::uint32_t node = 0;
    std::uint32_t labels = 0;  // a number of labels_
  };
  void MergeRows() {
    const RowTable& rows = period_.rows;
    const std::size_t width = rows.value_count();
    std::unordered_map<std::uint64_t, std::uint32_t> ids;
    ids.reserve(rows.size());
    rows_.reserve(rows.size());
    merged_rows_.reserve(rows.size());
    values_.reserve(rows.size() * width);
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const MergedRow merged{stacks_.NodeOf(rows.node(row)), labels_.OfRow(row)};
      const auto [at, is_new] = ids.try_emplace(std::uint64_t{merged.node} << 32 | merged.labels,
                                                static_cast<std::uint32_t>(rows_.size()));
      if (is_new) {
        rows_.push_back(merged);
        values_.resize(values_.size() + width);
      }
      merged_rows_.push_back(at->second);
      for (std::size_t i = 0; i < width; ++i) {
        std::int64_t& sum = values_[at->second * width + i];
        sum = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                        static_cast<std::uint64_t>(rows.value(row, i)));
      }
    }
  }

  [[nodiscard]] std::uint32_t AccountOf(std::size_t row) const {
    return labels_.AccountOf(rows_[row].labels);
  }

  // By account: a number for the thread's name.
  [[nodiscard]] std::vector<std::uint32_t> PoolsOfAccounts() const {
    std::vector<std::uint32_t> pools(labels_.size());
    std::unordered_map<std::string_view, std::uint32_t> numbers;
    for (std::uint32_t key = 0; key < period_.threads.size(); ++key) {
      if (labels_.OfThread(key) == kNone) continue;
      const auto number = static_cast<std::uint32_t>(numbers.size());
      pools[labels_.OfThread(key)] =
          numbers.try_emplace(period_.threads[key].thread.name, number).first->second;
    }
    return pools;
  }

  // Divides each thread's residual among its rows, or those like it: see DivideResiduals.
  void DivideAmounts() {
    const std::vector<std::uint32_t> pools = PoolsOfAccounts();
    const std::optional<std::uint32_t> residual = stacks_.FindRoot(PseudoFrame::kResidual);
    std::vector<internal::AmountRow> rows(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      rows[row] = {AccountOf(row), pools[AccountOf(row)], residual == rows_[row].node};
    }
    sums_cut_ = internal::DivideResiduals(rows, values_, period_.pooled_below);
  }

  [[nodiscard]] bool IsZero(std::size_t row) const {
    const std::size_t width = period_.rows.value_count();
    for (std::size_t i = 0; i < width; ++i) {
      if (values_[row * width + i] != 0) return false;
    }
    return true;
  }

  // Numbers the nodes that some row needs, parents first.
  void WriteStacks(Profile& profile) {
    const std::vector<StackNode>& nodes = stacks_.nodes();
    std::vector<bool> needed(nodes.size());
    needed[0] = true;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!IsZero(row)) needed[rows_[row].node] = true;
    }
    for (std::size_t id = nodes.size() - 1; id > 0; --id) {
      if (needed[id]) needed[nodes[id].parent] = true;
    }
    profile.stacks.clear();
    new_node_.assign(nodes.size(), kNone);
    new_frame_.assign(stacks_.frames().size(), kNone);
    for (std::size_t id = 0; id < nodes.size(); ++id) {
      if (!needed[id]) continue;
      new_node_[id] = static_cast<std::uint32_t>(profile.stacks.size());
      StackNode node;
      if (id != 0) {
        std::uint32_t& frame = new_frame_[nodes[id].frame];
        if (frame == kNone) {
          frame = static_cast<std::uint32_t>(used_frames_.size());
          used_frames_.push_back(nodes[id].frame);
        }
        node = {new_node_[nodes[id].parent], frame};
      }
      profile.stacks.push_back(node);
    }
  }

  void WriteFramesAndModules(Profile& profile) {
    const std::vector<Module>& modules = period_.modules.modules();
    std::vector<std::uint32_t> new_module(modules.size(), kNone);
    profile.modules.clear();
    const auto take = [&](std::uint32_t index) {
      if (new_module[index] == kNone) {
        new_module[index] = static_cast<std::uint32_t>(profile.modules.size());
        profile.modules.push_back(modules[index]);
      }
      return new_module[index];
    };
    // The program may lie above its libraries: by the system's choice, or begun by the loader.
    for (const std::uint32_t index : period_.modules.newest()) {
      if (modules[index].kind == ModuleKind::kProgram) take(index);
    }
    for (const std::uint32_t index : period_.modules.newest()) take(index);
    profile.frames.clear();
    profile.frames.reserve(used_frames_.size());
    for (const std::uint32_t id : used_frames_) {
      Frame frame = stacks_.frames()[id];
      if (frame.module < modules.size()) frame.module = take(frame.module);
      profile.frames.push_back(frame);
    }
  }

  void WriteThreads(Profile& profile) {
    std::vector<bool> has_rows(labels_.size());  // by account
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (!IsZero(row)) has_rows[AccountOf(row)] = true;
    }
    profile.threads.clear();
    for (std::uint32_t key = 0; key < period_.threads.size(); ++key) {
      const std::uint32_t account = labels_.OfThread(key);
      const LifePart* const life = period_.lives.Find(key);
      if ((account == kNone || !has_rows[account]) && !period_.threads[key].alive &&
          life == nullptr)
        continue;
      profile.threads.push_back(period_.threads[key].thread);
      if (life != nullptr) SetLife(*life, profile.threads.back());
    }
  }

  void SetLife(const LifePart& life, ProfileThread& thread) const {
    thread.begin_ns = UnixTimeNs(life.begin_ns);
    thread.end_ns = life.end_ns == 0 ? 0 : UnixTimeNs(life.end_ns);
    thread.cpu_ns = life.cpu_ns;
    thread.samples = life.samples;
  }

  void WriteSamples(Profile& profile) {
    const std::size_t width = period_.rows.value_count();
    std::vector<std::uint32_t> new_labels(labels_.size(), kNone);
    profile.label_sets.clear();
    profile.samples.clear();
    profile.values.clear();
    new_sample_.assign(rows_.size(), kNone);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (IsZero(row)) continue;
      std::uint32_t& labels = new_labels[rows_[row].labels];
      if (labels == kNone) {
        labels = static_cast<std::uint32_t>(profile.label_sets.size());
        profile.label_sets.push_back(labels_.Take(rows_[row].labels));
      }
      new_sample_[row] = static_cast<std::uint32_t>(profile.samples.size());
      profile.samples.push_back({new_node_[rows_[row].node], labels});
      const auto first = values_.begin() + static_cast<std::ptrdiff_t>(row * width);
      profile.values.insert(profile.values.end(), first,
                            first + static_cast<std::ptrdiff_t>(width));
    }
  }

  void WriteMoments(Profile& profile) {
    const MomentTable& moments = period_.moments;
    const std::size_t width = period_.rows.value_count();
    std::vector<std::size_t> order(moments.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return moments.time_ns(i); });
    std::vector<internal::Division> divisions(moments.size() == 0 ? 0 : values_.size());
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      divisions[i] = {.whole = static_cast<std::uint64_t>(values_[i]),
                      .parts = static_cast<std::uint64_t>(sampled_[i])};
    }
    profile.moments.clear();
    profile.moment_values.clear();
    for (const std::size_t moment : order) {
      const std::size_t row = merged_rows_[moments.row(moment)];
      if (new_sample_[row] == kNone) continue;
      profile.moments.push_back({new_sample_[row], UnixTimeNs(moments.time_ns(moment))});
      for (std::size_t i = 0; i < width; ++i)
        profile.moment_values.push_back(divisions[row * width + i].Next(moments.value(moment, i)));
    }
  }

  // Wraps around for the time of a forged record.
  [[nodiscard]] std::int64_t UnixTimeNs(std::int64_t monotonic_ns) const {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(monotonic_ns) +
                                     static_cast<std::uint64_t>(period_.unix_offset_ns));
  }

  const AggregatedPeriod& period_;
  const internal::MergedStacks stacks_;
  internal::MergedLabels labels_;
  std::vector<std::uint32_t> merged_rows_;  // of each row: index into rows_
  std::vector<MergedRow> rows_;
  std::vector<std::int64_t> values_;
  std::vector<std::int64_t> sampled_;  // the values before DivideAmounts; empty without moments
  std::uint64_t sums_cut_ = 0;
  std::vector<std::uint32_t> new_node_;
  std::vector<std::uint32_t> new_frame_;
  std::vector<std::uint32_t> new_sample_;
  std::vector<std::uint32_t> used_frames_;
};

}  // namespace

void FillProfile(AggregatedPeriod&& period, Profile& profile) {
  Conversion(period).Run(profile);
  if (period.zone_frames) AddZoneFrames(profile);
  const AggregatedPeriod done = std::move(period);
}

}  // namespace strobe
