// Profile: the immutable result of one period, and the input of all encoders, symbolizers and
// exporters. It does not depend on where its samples came from.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/checked_containers.h"  // IWYU pragma: keep
#include "strobe/core/label_set.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"
#include "strobe/core/stats.h"
#include "strobe/core/value_type.h"

namespace strobe {

// One distinct code address, pseudo-frame or zone of a profile.
struct Frame {
  static constexpr std::uint32_t kNoModule = 0xFFFFFFFF;  // an address in no known module
  // `address` is a PseudoFrame or, from kFirstZone on, kFirstZone + an index into Profile::zones.
  static constexpr std::uint32_t kPseudo = 0xFFFFFFFE;
  static constexpr Address kFirstZone = 1 << 16;

  Address address = 0;               // look it up unchanged: see WalkResult
  std::uint32_t module = kNoModule;  // index into Profile::modules

  // True for a frame that is not of code, zones included.
  [[nodiscard]] bool is_pseudo() const { return module == kPseudo; }
  [[nodiscard]] bool is_zone() const { return is_pseudo() && address >= kFirstZone; }
  friend bool operator==(const Frame&, const Frame&) = default;
};

// A stack is a path in a tree from the node to the root: node = (frame, caller's node).
struct StackNode {
  std::uint32_t parent = 0;  // index into Profile::stacks; the root is its own parent
  std::uint32_t frame = 0;   // index into Profile::frames; without meaning in the root
};

// A thread that was registered in the period, also if it has no sample. Samples refer to label
// sets, not to threads.
struct ProfileThread {
  std::uint64_t id = 0;  // the system's thread id
  std::string name;      // valid UTF-8, at most 63 bytes
  // When its registration began and ended, in nanoseconds since 1970; 0 if unknown or, of the end,
  // after the period. An end just after the period is there if the period has the thread's last
  // amounts.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  // CPU time used in the period while it was registered; -1 if unknown. The thread's rows of CPU
  // time add up to it, [residual] included. The rows of threads of one name that were too short
  // to be sampled enough add up to the sum of theirs: see FillProfile.
  std::int64_t cpu_ns = -1;
  std::uint64_t samples = 0;  // captures in the period: they say how its time is divided
};

// One row: a stack and a set of labels. Its values are in Profile::values.
struct ProfileSample {
  std::uint32_t stack = 0;   // index into Profile::stacks: the leaf's node
  std::uint32_t labels = 0;  // index into Profile::label_sets
};

// One capture with its time. Its values are in Profile::moment_values.
struct ProfileMoment {
  std::uint32_t sample = 0;  // index into Profile::samples: the row that it is a part of
  // Since 1970. A capture from just before the period's begin, which no earlier period has, is a
  // part of this period.
  std::int64_t time_ns = 0;
};

struct Profile {
  std::vector<ValueType> value_types;
  std::size_t default_value_type = 0;  // index into value_types: what a viewer shows first

  std::vector<Module> modules;     // [0] is the program itself if it is known
  std::vector<Frame> frames;       // distinct
  std::vector<std::string> zones;  // the names of the frames that are zones: see AddZoneFrames
  std::vector<StackNode> stacks;   // [0] is the root; a parent stands before its children
  // Distinct. Each has the labels of its thread (see kThreadIdLabel), and those that the thread
  // set.
  std::vector<LabelSet> label_sets;
  std::vector<ProfileThread> threads;
  std::vector<ProfileSample> samples;  // distinct (stack, labels)
  // Row by row: samples.size() * value_types.size() values. None is less than 0.
  std::vector<std::int64_t> values;
  // The captures whose times were kept, in order of time; empty without sampling.timestamps.
  std::vector<ProfileMoment> moments;
  // moments.size() * value_types.size() values. The moments of a row add up to at most its values.
  std::vector<std::int64_t> moment_values;

  std::int64_t time_ns = 0;      // when the period began, since 1970
  std::int64_t duration_ns = 0;  // how long it lasted
  ValueType period_type;         // of the sampling period
  std::int64_t period = 0;       // in period_type's unit; 0 if unknown
  std::string program;           // base name of the program's file
  std::uint64_t process_id = 0;
  LabelSet machine;  // see encode/machine_tags.h; empty if not wanted or unknown
  // Number of this period within its profiler, from 0. Recordings on demand are numbered
  // separately.
  std::uint64_t sequence = 0;
  // Not empty for a window of what was kept (see RecordingOptions::last): how much it has, and why
  // it was written. Its samples are in other periods, too.
  std::string window;
  Stats stats;  // of this period

  // The name of a frame for which is_pseudo() is true.
  [[nodiscard]] std::string_view PseudoName(const Frame& frame) const {
    if (!frame.is_zone()) {
      return PseudoFrameName(
          static_cast<PseudoFrame>(std::min<Address>(frame.address, kPseudoFrameCount)));
    }
    const Address zone = frame.address - Frame::kFirstZone;
    return zone < zones.size() ? std::string_view(zones[zone]) : "[unknown]";
  }
  // The labels of sample `index`.
  [[nodiscard]] const LabelSet& Labels(std::size_t index) const {
    return label_sets[samples[index].labels];
  }
  // The values of sample `index`, one per value type.
  [[nodiscard]] std::span<const std::int64_t> Values(std::size_t index) const {
    return std::span(values).subspan(index * value_types.size(), value_types.size());
  }
  // The values of moment `index`, one per value type.
  [[nodiscard]] std::span<const std::int64_t> MomentValues(std::size_t index) const {
    return std::span(moment_values).subspan(index * value_types.size(), value_types.size());
  }
};

}  // namespace strobe
