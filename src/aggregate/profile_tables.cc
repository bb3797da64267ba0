#include "strobe/aggregate/profile_tables.h"

#include <utility>
#include <vector>

#include "strobe/base/amounts.h"

namespace strobe {
namespace {

// A profile's vectors grow by doubling, and while one grows, the old half is there as well.
constexpr std::size_t kGrowth = 2;

}  // namespace

std::uint32_t ProfileTables::FindNode(const Profile& profile, std::uint32_t parent,
                                      std::uint32_t frame) const {
  const std::vector<StackNode>& nodes = profile.stacks;
  const auto matches = [&](std::uint32_t id) {
    return nodes[id].parent == parent && nodes[id].frame == frame;
  };
  const std::uint32_t next = parent + 1;
  if (next < nodes.size() && matches(next)) return next;
  return branches_.Find(HashPair(frame, parent), matches);
}

std::uint32_t ProfileTables::Node(Profile& profile, std::uint32_t parent, std::uint32_t frame) {
  const std::uint32_t found = FindNode(profile, parent, frame);
  if (found != kNone) return found;
  const auto node = static_cast<std::uint32_t>(profile.stacks.size());
  profile.stacks.push_back({parent, frame});
  budget_.Take(kGrowth * sizeof(StackNode));
  // A first child stands right behind its parent, and is found there.
  if (node != parent + 1 && branches_.MakeRoom(budget_, Admission::kAlways))
    branches_.Insert(HashPair(frame, parent), node);
  return node;
}

std::uint32_t ProfileTables::Labels(Profile& profile, LabelSet set) {
  const auto next = static_cast<std::uint32_t>(profile.label_sets.size());
  const auto [place, is_new] = label_sets_.try_emplace(std::move(set), next);
  if (is_new) {
    profile.label_sets.push_back(place->first);
    budget_.Take(2 * kGrowth * place->first.memory_bytes());
  }
  return place->second;
}

std::uint32_t ProfileTables::FindRow(const Profile& profile, std::uint32_t stack,
                                     std::uint32_t labels) const {
  return rows_.Find(HashPair(labels, stack), [&](std::uint32_t id) {
    return profile.samples[id].stack == stack && profile.samples[id].labels == labels;
  });
}

std::uint32_t ProfileTables::AddRow(Profile& profile, std::uint32_t stack, std::uint32_t labels,
                                    std::span<const std::int64_t> values) {
  const std::uint32_t found = FindRow(profile, stack, labels);
  if (found != kNone) {
    std::int64_t* const sums = profile.values.data() + found * values.size();
    for (std::size_t i = 0; i < values.size(); ++i) sums[i] = SaturatedSum(sums[i], values[i]);
    return found;
  }
  const auto row = static_cast<std::uint32_t>(profile.samples.size());
  profile.samples.push_back({stack, labels});
  profile.values.insert(profile.values.end(), values.begin(), values.end());
  budget_.Take(kGrowth * (sizeof(ProfileSample) + values.size_bytes()));
  if (rows_.MakeRoom(budget_, Admission::kAlways)) rows_.Insert(HashPair(labels, stack), row);
  return row;
}

}  // namespace strobe
