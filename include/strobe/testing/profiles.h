// Profiles to test and measure encoders, symbolizers and exporters with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"
#include "strobe/core/stack.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"

namespace strobe::testing {

// A profile and the names of its frames.
struct SampleProfile {
  std::string name;
  Profile profile;
  Symbols symbols;
};

// Builds the tree of stacks, and rows that have only their thread's labels. Each row must be added
// only once.
class ProfileBuilder {
 public:
  explicit ProfileBuilder(Profile& profile) : profile_(profile) {
    if (profile_.stacks.empty()) profile_.stacks.push_back({});
  }

  // Index of a new frame.
  std::uint32_t AddFrame(Address address, std::uint32_t module) {
    profile_.frames.push_back({address, module});
    return static_cast<std::uint32_t>(profile_.frames.size() - 1);
  }
  std::uint32_t AddPseudoFrame(PseudoFrame frame) {
    return AddFrame(static_cast<Address>(frame), Frame::kPseudo);
  }

  // The node of `frame` called by `parent`.
  std::uint32_t Child(std::uint32_t parent, std::uint32_t frame) {
    const auto next = static_cast<std::uint32_t>(profile_.stacks.size());
    const auto [entry, is_new] = children_.try_emplace({parent, frame}, next);
    if (is_new) profile_.stacks.push_back({parent, frame});
    return entry->second;
  }

  // Adds a thread, and its labels at the same index in `label_sets`.
  void AddThread(std::uint64_t id, const std::string& name) {
    profile_.threads.push_back({id, name});
    profile_.label_sets.push_back(ThreadLabels(id, name));
  }

  // Adds a row. `frames` go from the root to the leaf.
  void AddSample(std::uint32_t thread, std::initializer_list<std::uint32_t> frames,
                 std::initializer_list<std::int64_t> values) {
    std::uint32_t node = 0;
    for (const std::uint32_t frame : frames) node = Child(node, frame);
    profile_.samples.push_back({node, thread});
    profile_.values.insert(profile_.values.end(), values);
  }

 private:
  Profile& profile_;
  absl::flat_hash_map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> children_;
};

// The part that every sample profile has: two columns and the profile's header.
inline Profile ProfileHead() {
  Profile profile;
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
  profile.default_value_type = 1;
  profile.stacks = {StackNode{}};
  profile.time_ns = 1'700'000'000'123'456'789;
  profile.duration_ns = 60'000'000'000;
  profile.period_type = {"cpu", "nanoseconds"};
  profile.period = 10'000'000;
  profile.program = "sample_program";
  profile.process_id = 4242;
  return profile;
}

// A period in which nothing ran.
// Samples, CPU time and wall time of two threads: of "main" one row, without wall time, and of
// "worker" one row of two frames.
inline void AddTwoThreads(Profile& profile) {
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}, {"wall", "nanoseconds"}};
  profile.default_value_type = 1;
  ProfileBuilder builder(profile);
  builder.AddThread(101, "main");
  builder.AddThread(102, "worker");
  const std::uint32_t root = builder.AddPseudoFrame(PseudoFrame::kTruncated);
  const std::uint32_t leaf = builder.AddFrame(0x1234, Frame::kNoModule);
  builder.AddSample(0, {root}, {3, 30'000'000, 0});
  builder.AddSample(1, {root, leaf}, {2, 20'000'000, 50'000'000});
}

inline SampleProfile EmptyProfile() { return {"empty", ProfileHead(), {}}; }

inline Stats SmallProfileStats() {
  Stats stats;
  stats.samples = 105;
  stats.drops[static_cast<std::size_t>(DropReason::kRingFull)] = 3;
  stats.stack_ends = {101, 1, 1, 1, 1};
  stats.requested_rate_hz = 100;
  stats.measured_rate_hz = 99.5;
  stats.handler_time_ns = 1'234'567;
  stats.collector_cpu_ns = 2'500'000;
  stats.process_cpu_ns = 10'000'000'000;
  stats.memory_bytes = 3 * 1024 * 1024 / 2;
  return stats;
}

// A few rows that have every feature a profile can have: three columns, named and unknown code,
// code outside every module, each pseudo-frame, a negative and a zero row, a row without frames,
// names beyond ASCII, statistics.
inline SampleProfile SmallProfile() {
  SampleProfile sample{"small", ProfileHead(), {}};
  Profile& profile = sample.profile;
  profile.value_types.push_back({"wall", "nanoseconds"});
  profile.sequence = 7;
  profile.modules = {{0x400000, 0x500000, 0x1000, 0x3FF000, "/opt/sample/bin/sample_program",
                      "00112233445566778899aabbccddeeff00112233"},
                     {0x7F0000000000, 0x7F0000100000, 0x26000, 0x7EFFFFFDA000,
                      "/usr/lib/libsample.so.6", "ffeeddccbbaa99887766554433221100ffeeddcc"}};
  profile.modules[0].kind = ModuleKind::kProgram;
  ProfileBuilder builder(profile);
  builder.AddThread(4242, "main");
  builder.AddThread(4243, "w\xC3\xB6rker 1");
  builder.AddThread(4'294'967'295, "");
  const std::uint32_t main = builder.AddFrame(0x401233, 0);
  const std::uint32_t busy = builder.AddFrame(0x402345, 0);
  const std::uint32_t library = builder.AddFrame(0x7F0000012344, 1);
  const std::uint32_t unknown = builder.AddFrame(0x7F0000054321, 1);
  const std::uint32_t generated = builder.AddFrame(0xFFFFFFFF81000000, Frame::kNoModule);
  sample.symbols.functions = {{.name = "main", .system_name = "main"},
                              {.name = "sample::Busy(int, std::vector<int> const&)",
                               .system_name = "_ZN6sample4BusyEiRKSt6vectorIiSaIiEE"},
                              {.name = "sample_write", .system_name = "sample_write"},
                              {.name = "libsample.so.6+0x54321",
                               .system_name = "libsample.so.6+0x54321",
                               .resolved = false}};
  sample.symbols.frames.resize(5);
  for (std::uint32_t i = 0; i < 4; ++i) sample.symbols.frames[i].function = i;
  const std::int64_t period = profile.period;
  builder.AddSample(0, {main, busy}, {70, 70 * period, 0});
  builder.AddSample(0, {main, busy, library}, {20, 20 * period, 0});
  builder.AddSample(1, {main, busy}, {5, 5 * period, 300'000'000});
  builder.AddSample(1, {main, unknown}, {1, period, 0});
  builder.AddSample(2, {main, generated}, {2, 2 * period, 0});
  builder.AddSample(2, {main}, {0, 0, 0});
  builder.AddSample(1, {}, {1, period, 0});
  for (std::size_t i = 0; i < kPseudoFrameCount; ++i) {
    const std::uint32_t pseudo = builder.AddPseudoFrame(static_cast<PseudoFrame>(i));
    sample.symbols.frames.push_back({});
    if (static_cast<PseudoFrame>(i) == PseudoFrame::kResidual) {
      builder.AddSample(0, {pseudo}, {0, 3'000'000, 0});
    } else {
      builder.AddSample(0, {pseudo, busy}, {1, period, 0});
    }
  }
  profile.stats = SmallProfileStats();
  return sample;
}

// SmallProfile without names, as if nothing was symbolized.
inline SampleProfile UnsymbolizedProfile() {
  SampleProfile sample = SmallProfile();
  sample.name = "unsymbolized";
  sample.symbols = {};
  return sample;
}

// SmallProfile with source lines, inlined functions, labels that the program has set, lives of
// threads and moments.
inline SampleProfile DetailedProfile() {
  SampleProfile sample = SmallProfile();
  sample.name = "detailed";
  Symbols& symbols = sample.symbols;
  symbols.functions[0].file = "/src/sample/main.cc";
  symbols.functions[0].line = 10;
  symbols.functions[1].file = "/src/sample/busy.cc";
  symbols.functions[1].line = 20;
  const auto inlined = static_cast<std::uint32_t>(symbols.functions.size());
  symbols.functions.push_back({.name = "sample::Step(int)",
                               .system_name = "_ZN6sample4StepEi",
                               .file = "/src/sample/step.h",
                               .line = 5});
  symbols.functions.push_back({.name = "sample::Loop<int>(int)",
                               .system_name = "_ZN6sample4LoopIiEEvi",
                               .file = "/src/sample/w\xC3\xB6rk.h",
                               .line = 7});
  symbols.frames[0].line = 12;
  symbols.frames[1] = {
      .function = 1, .line = 25, .column = 3, .inlined_begin = 0, .inlined_count = 2};
  symbols.inlined = {{.function = inlined, .line = 6, .column = 9},
                     {.function = inlined + 1, .line = 8}};
  Profile& profile = sample.profile;
  profile.samples[1].labels = static_cast<std::uint32_t>(profile.label_sets.size());
  profile.label_sets.push_back(
      LabelSet({{"request", std::string("check;out")}, {"batch size", std::int64_t{7}}})
          .Joined(profile.label_sets[0]));
  for (ProfileThread& thread : profile.threads) {
    thread.begin_ns = profile.time_ns - 1'000'000'000;
    thread.cpu_ns = 900'000'000;
    thread.samples = 90;
  }
  profile.threads[2].begin_ns = profile.time_ns + 2'000'000;
  profile.threads[2].end_ns = profile.time_ns + 5'000'000;
  for (std::int64_t i = 0; i < 6; ++i) {
    profile.moments.push_back({.sample = static_cast<std::uint32_t>(i % 3),
                               .time_ns = profile.time_ns + 1'000'000 + i * profile.period});
    profile.moment_values.insert(profile.moment_values.end(), {1, profile.period, 0});
  }
  return sample;
}

// `stack_count` distinct stacks of `depth` frames out of `frame_count`. Each shares `shared_depth`
// frames from the root with the previous stack. Equal arguments give equal profiles on every
// machine.
inline SampleProfile RandomProfile(std::size_t stack_count, std::size_t depth,
                                   std::size_t shared_depth, std::size_t frame_count,
                                   std::uint64_t seed = 1) {
  SampleProfile sample{absl::StrCat("random_", stack_count, "x", depth, "_shared_", shared_depth),
                       ProfileHead(),
                       {}};
  Profile& profile = sample.profile;
  constexpr Address kStart = 0x555500000000, kStep = 37;
  profile.modules = {{kStart, kStart + (frame_count + 1) * kStep, 0, kStart,
                      "/opt/sample/bin/sample_program", "0123456789abcdef"}};
  profile.modules[0].kind = ModuleKind::kProgram;
  ProfileBuilder builder(profile);
  builder.AddThread(4242, "main");
  for (std::uint64_t i = 1; i <= 3; ++i) builder.AddThread(4242 + i, absl::StrCat("worker ", i));
  for (std::size_t i = 0; i < frame_count; ++i) {
    builder.AddFrame(kStart + i * kStep, 0);
    // About ten call sites per function.
    if (i % 10 == 0) {
      const std::string name = absl::StrCat("sample::Function", i / 10, "(int)");
      sample.symbols.functions.push_back({.name = name, .system_name = "_Z" + name});
    }
    sample.symbols.frames.push_back({.function = static_cast<std::uint32_t>(i / 10)});
  }
  std::uint64_t state = seed;
  const auto random = [&state](std::uint64_t bound) {
    state = state * 6364136223846793005 + 1442695040888963407;
    return (state >> 33) % bound;
  };
  std::vector<std::uint32_t> path(depth + 1, 0);
  for (std::size_t i = 0; i < stack_count;) {
    for (std::size_t level = i == 0 ? 0 : shared_depth; level < depth; ++level) {
      path[level + 1] = builder.Child(path[level], static_cast<std::uint32_t>(random(frame_count)));
    }
    // The stack is new exactly if its last node is new.
    if (path[depth] + 1 != profile.stacks.size()) continue;
    profile.samples.push_back(
        {path[depth], static_cast<std::uint32_t>(i % profile.threads.size())});
    const auto count = static_cast<std::int64_t>(1 + random(20));
    profile.values.insert(profile.values.end(), {count, count * profile.period});
    ++i;
  }
  profile.stats.samples = stack_count;
  return sample;
}

// One profile of each kind, small enough for a test.
inline std::vector<SampleProfile> SampleProfiles() {
  std::vector<SampleProfile> samples;
  samples.push_back(EmptyProfile());
  samples.push_back(SmallProfile());
  samples.push_back(UnsymbolizedProfile());
  samples.push_back(DetailedProfile());
  samples.push_back(RandomProfile(200, 30, 0, 500));
  samples.push_back(RandomProfile(200, 30, 26, 500));
  return samples;
}

}  // namespace strobe::testing
