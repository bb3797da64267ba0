#include "profile_builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {

// The vectors below grow by doubling, and while one grows, the old half is there as well.
constexpr std::size_t kGrowth = 2;

ProfileBuilder::ProfileBuilder(std::size_t max_bytes) : tables_(max_bytes) {
  profile().stacks.push_back({});
}

absl::Status ProfileBuilder::status() const {
  const MemoryBudget& budget = tables_.budget();
  if (budget.Allows(0)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the profile needs more than ", budget.limit_bytes() >> 20, " MiB of memory"));
}

std::uint32_t ProfileBuilder::Stack(std::span<const std::uint32_t> frames) {
  std::size_t depth = 0;
  const std::size_t shared = std::min(frames.size(), last_frames_.size());
  while (depth < shared && frames[frames.size() - 1 - depth] == last_frames_[depth]) ++depth;
  last_frames_.resize(depth);
  last_nodes_.resize(depth);
  std::uint32_t node = depth == 0 ? 0 : last_nodes_[depth - 1];
  for (; depth < frames.size(); ++depth) {
    const std::uint32_t frame = frames[frames.size() - 1 - depth];
    node = tables_.Node(profile(), node, frame);
    last_frames_.push_back(frame);
    last_nodes_.push_back(node);
  }
  return node;
}

void ProfileBuilder::AddMoment(std::uint32_t row, std::int64_t time_ns,
                               std::span<const std::int64_t> values) {
  profile().moments.push_back({row, time_ns});
  profile().moment_values.insert(profile().moment_values.end(), values.begin(), values.end());
  Take(kGrowth * (sizeof(ProfileMoment) + values.size_bytes()));
}

void ProfileBuilder::AddThreads() {
  if (!profile().threads.empty()) return;
  absl::flat_hash_map<std::int64_t, std::size_t> numbers;
  for (const LabelSet& set : profile().label_sets) {
    const std::int64_t id = set.Number(kThreadIdLabel);
    const std::string& name = set.Text(kThreadNameLabel);
    if (id == 0 && name.empty()) continue;
    if (!numbers.try_emplace(id, profile().threads.size()).second) continue;
    profile().threads.push_back({static_cast<std::uint64_t>(id), name});
  }
}

void ProfileBuilder::SortMoments() {
  const std::vector<ProfileMoment>& moments = profile().moments;
  if (std::ranges::is_sorted(moments, {}, &ProfileMoment::time_ns)) return;
  std::vector<std::size_t> order(moments.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return moments[i].time_ns; });
  Profile sorted;
  for (const std::size_t i : order) {
    sorted.moments.push_back(moments[i]);
    const auto values = profile().MomentValues(i);
    sorted.moment_values.insert(sorted.moment_values.end(), values.begin(), values.end());
  }
  profile().moments = std::move(sorted.moments);
  profile().moment_values = std::move(sorted.moment_values);
}

LoadedProfile ProfileBuilder::Finish() {
  AddThreads();
  SortMoments();
  loaded_.CleanTexts();
  return std::move(loaded_);
}

}  // namespace strobe::internal
