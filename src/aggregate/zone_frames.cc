#include "strobe/aggregate/zone_frames.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strobe/core/label_set.h"
#include "strobe/core/zone.h"

namespace strobe {
namespace {

// Builds the tree of stacks anew. The maps are the standard library's, because an Abseil map is
// left in a broken state if an insertion runs out of memory.
class ZoneTree {
 public:
  explicit ZoneTree(const Profile& profile) : profile_(profile), frames_(profile.frames) {}

  // The node of a path of zones.
  std::uint32_t NodeOf(std::string_view path) {
    std::uint32_t node = 0;
    VisitZones(path, [&](std::string_view name, std::string_view down_to) {
      const auto next = static_cast<std::uint32_t>(stacks_.size());
      const auto [place, is_new] = paths_.try_emplace(std::string(down_to), next);
      if (is_new) stacks_.push_back({node, FrameOf(name)});
      node = place->second;
    });
    return node;
  }

  // The node of the stack `old` of the profile below the zones of `root`.
  std::uint32_t NodeBelow(std::uint32_t root, std::uint32_t old) {
    missing_.clear();
    std::uint32_t node = root;
    for (; old != 0; old = profile_.stacks[old].parent) {
      const auto known = nodes_.find(Key(root, old));
      if (known != nodes_.end()) {
        node = known->second;
        break;
      }
      missing_.push_back(old);
    }
    for (; !missing_.empty(); missing_.pop_back()) {
      const auto next = static_cast<std::uint32_t>(stacks_.size());
      stacks_.push_back({node, profile_.stacks[missing_.back()].frame});
      nodes_.emplace(Key(root, missing_.back()), next);
      node = next;
    }
    return node;
  }

  void MoveInto(Profile& profile) {
    profile.frames = std::move(frames_);
    profile.zones = std::move(zones_);
    profile.stacks = std::move(stacks_);
  }

 private:
  static std::uint64_t Key(std::uint32_t root, std::uint32_t old) {
    return std::uint64_t{root} << 32 | old;
  }

  std::uint32_t FrameOf(std::string_view name) {
    const auto next = static_cast<std::uint32_t>(frames_.size());
    const auto [place, is_new] = frame_numbers_.try_emplace(std::string(name), next);
    if (is_new) {
      frames_.push_back({Frame::kFirstZone + zones_.size(), Frame::kPseudo});
      zones_.emplace_back(name);
    }
    return place->second;
  }

  const Profile& profile_;
  std::vector<Frame> frames_;
  std::vector<std::string> zones_;
  std::vector<StackNode> stacks_{StackNode{}};
  std::unordered_map<std::string, std::uint32_t> frame_numbers_;  // by name
  std::unordered_map<std::string, std::uint32_t> paths_;          // nodes
  std::unordered_map<std::uint64_t, std::uint32_t> nodes_;
  std::vector<std::uint32_t> missing_;
};

}  // namespace

void AddZoneFrames(Profile& profile) {
  const bool has_zones = std::ranges::any_of(
      profile.label_sets, [](const LabelSet& set) { return !set.Text(kZoneLabel).empty(); });
  if (!has_zones) return;
  ZoneTree tree(profile);
  std::vector<std::uint32_t> roots;
  roots.reserve(profile.label_sets.size());
  for (const LabelSet& set : profile.label_sets) roots.push_back(tree.NodeOf(set.Text(kZoneLabel)));
  std::vector<ProfileSample> samples = profile.samples;
  for (ProfileSample& sample : samples)
    sample.stack = tree.NodeBelow(roots[sample.labels], sample.stack);
  tree.MoveInto(profile);
  profile.samples = std::move(samples);
}

}  // namespace strobe
