// CheckProfile: checks that a Profile keeps the contract of core/profile.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/profile.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"

namespace strobe::testing {

// The part of CheckProfile for modules and frames.
inline std::string CheckProfileFrames(const Profile& profile) {
  for (std::size_t i = 0; i < profile.modules.size(); ++i) {
    if (profile.modules[i].limit <= profile.modules[i].start)
      return absl::StrCat("module ", i, " is empty");
  }
  absl::flat_hash_set<std::pair<Address, std::uint32_t>> frames;
  for (std::size_t i = 0; i < profile.frames.size(); ++i) {
    const Frame& frame = profile.frames[i];
    if (!frames.emplace(frame.address, frame.module).second)
      return absl::StrCat("frame ", i, " stands there twice");
    if (frame.is_pseudo()) {
      const bool is_known = frame.is_zone()
                                ? frame.address - Frame::kFirstZone < profile.zones.size()
                                : frame.address < kPseudoFrameCount;
      if (!is_known) return absl::StrCat("frame ", i, " is no known pseudo-frame");
      continue;
    }
    if (frame.module == Frame::kNoModule) continue;
    if (frame.module >= profile.modules.size())
      return absl::StrCat("frame ", i, " names module ", frame.module, ", which does not exist");
    const Module& module = profile.modules[frame.module];
    if (frame.address < module.start || frame.address >= module.limit)
      return absl::StrCat("frame ", i, " lies outside its module");
  }
  return "";
}

// The same for what is said of threads and moments.
inline std::string CheckThreadsAndMoments(const Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  if (profile.moment_values.size() != profile.moments.size() * columns) {
    return absl::StrCat(profile.moment_values.size(), " values for ", profile.moments.size(),
                        " moments of ", columns);
  }
  std::vector<std::int64_t> rests = profile.values;
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    if (profile.moments[i].sample >= profile.samples.size())
      return absl::StrCat("moment ", i, " names sample ", profile.moments[i].sample);
    for (std::size_t column = 0; column < columns; ++column) {
      const std::int64_t value = profile.MomentValues(i)[column];
      std::int64_t& rest = rests[profile.moments[i].sample * columns + column];
      if (value < 0 || value > rest)
        return absl::StrCat("moment ", i, " has more than is left of its row, or less than 0");
      rest -= value;
    }
    if (i > 0 && profile.moments[i].time_ns < profile.moments[i - 1].time_ns)
      return absl::StrCat("moment ", i, " is earlier than the one before");
  }
  for (std::size_t i = 0; i < profile.threads.size(); ++i) {
    const std::string& name = profile.threads[i].name;
    if (name != SanitizedThreadName(name))
      return absl::StrCat("the name of thread ", i, " is too long or not clean");
  }
  return "";
}

// A description of the first inconsistency of `profile`, or an empty string. Checks sizes and
// values; that indices are in range and parents come before children; and that rows, frames and the
// branches of the tree of stacks are distinct.
inline std::string CheckProfile(const Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  if (columns == 0) return "no value types";
  if (profile.default_value_type >= columns) return "the default value type does not exist";
  if (profile.values.size() != profile.samples.size() * columns) {
    return absl::StrCat(profile.values.size(), " values for ", profile.samples.size(),
                        " samples of ", columns);
  }
  for (std::size_t i = 0; i < profile.values.size(); ++i) {
    if (profile.values[i] < 0) return absl::StrCat("value ", i, " is less than 0");
  }
  if (std::string wrong = CheckProfileFrames(profile); !wrong.empty()) return wrong;
  if (profile.stacks.empty()) return "the tree of stacks has no root";
  if (profile.stacks[0].parent != 0) return "the root of the stacks is not its own parent";
  absl::flat_hash_set<std::pair<std::uint32_t, std::uint32_t>> branches;
  for (std::size_t i = 1; i < profile.stacks.size(); ++i) {
    const StackNode& node = profile.stacks[i];
    if (node.parent >= i)
      return absl::StrCat("stack ", i, " stands before its parent ", node.parent);
    if (node.frame >= profile.frames.size())
      return absl::StrCat("stack ", i, " names frame ", node.frame, ", which does not exist");
    if (!branches.emplace(node.parent, node.frame).second)
      return absl::StrCat("stack ", i, " stands there twice");
  }
  absl::flat_hash_set<std::pair<std::uint32_t, std::uint32_t>> rows;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    if (sample.stack >= profile.stacks.size())
      return absl::StrCat("sample ", i, " names stack ", sample.stack, ", which does not exist");
    if (sample.labels >= profile.label_sets.size())
      return absl::StrCat("sample ", i, " names labels ", sample.labels, ", which do not exist");
    if (!rows.emplace(sample.stack, sample.labels).second)
      return absl::StrCat("sample ", i, " stands there twice");
  }
  absl::flat_hash_set<LabelSet> label_sets;
  for (std::size_t i = 0; i < profile.label_sets.size(); ++i) {
    if (!label_sets.insert(profile.label_sets[i]).second)
      return absl::StrCat("the set of labels ", i, " stands there twice");
  }
  return CheckThreadsAndMoments(profile);
}

}  // namespace strobe::testing
