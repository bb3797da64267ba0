#include "profile_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {

// The vectors below grow by doubling, and while one grows, the old half is there as well.
constexpr std::size_t kGrowth = 2;

std::int64_t SaturatedSum(std::int64_t a, std::int64_t b) {
  using Limits = std::numeric_limits<std::int64_t>;
  if (b > 0 && a > Limits::max() - b) return Limits::max();
  if (b < 0 && a < Limits::min() - b) return Limits::min();
  return a + b;
}

ProfileBuilder::ProfileBuilder(std::size_t max_bytes) : budget_(max_bytes) {
  profile().stacks.push_back({});
}

absl::Status ProfileBuilder::status() const {
  if (budget_.Allows(0)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the profile needs more than ", budget_.limit_bytes() >> 20, " MiB of memory"));
}

std::uint32_t ProfileBuilder::Child(std::uint32_t parent, std::uint32_t frame) {
  std::vector<StackNode>& nodes = profile().stacks;
  const auto matches = [&](std::uint32_t id) {
    return nodes[id].parent == parent && nodes[id].frame == frame;
  };
  const std::uint32_t next = parent + 1;
  if (next < nodes.size() && matches(next)) return next;
  const std::uint64_t hash = HashPair(frame, parent);
  if (const std::uint32_t found = branches_.Find(hash, matches); found != IdTable::kNone)
    return found;
  const auto node = static_cast<std::uint32_t>(nodes.size());
  nodes.push_back({parent, frame});
  budget_.Take(kGrowth * sizeof(StackNode));
  // A first child stands right behind its parent, and is found there.
  if (node != next && branches_.MakeRoom(budget_, Admission::kAlways)) branches_.Insert(hash, node);
  return node;
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
    node = Child(node, frame);
    last_frames_.push_back(frame);
    last_nodes_.push_back(node);
  }
  return node;
}

std::uint32_t ProfileBuilder::Labels(LabelSet set) {
  const auto next = static_cast<std::uint32_t>(profile().label_sets.size());
  const auto [place, is_new] = label_sets_.try_emplace(std::move(set), next);
  if (is_new) {
    profile().label_sets.push_back(place->first);
    budget_.Take(2 * kGrowth * place->first.memory_bytes());
  }
  return place->second;
}

std::uint32_t ProfileBuilder::AddRow(std::uint32_t stack, std::uint32_t labels,
                                     std::span<const std::int64_t> values) {
  std::vector<ProfileSample>& rows = profile().samples;
  const std::uint64_t hash = HashPair(labels, stack);
  const std::uint32_t found = rows_.Find(
      hash, [&](std::uint32_t id) { return rows[id].stack == stack && rows[id].labels == labels; });
  if (found != IdTable::kNone) {
    std::int64_t* const sums = profile().values.data() + found * values.size();
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] = SaturatedSum(sums[i], values[i]);
    return found;
  }
  const auto row = static_cast<std::uint32_t>(rows.size());
  rows.push_back({stack, labels});
  profile().values.insert(profile().values.end(), values.begin(), values.end());
  budget_.Take(kGrowth * (sizeof(ProfileSample) + values.size_bytes()));
  if (rows_.MakeRoom(budget_, Admission::kAlways)) rows_.Insert(hash, row);
  return row;
}

void ProfileBuilder::AddMoment(std::uint32_t row, std::int64_t time_ns,
                               std::span<const std::int64_t> values) {
  profile().moments.push_back({row, time_ns});
  profile().moment_values.insert(profile().moment_values.end(), values.begin(), values.end());
  budget_.Take(kGrowth * (sizeof(ProfileMoment) + values.size_bytes()));
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
