// What the exported profile says of stacks: names, callers, threads, and how a stack ends that
// could not be walked to its root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/platform/native.h"
#include "strobe/testing/pprof_reader.h"
#include "strobe/unwind/frame_pointer_unwinder.h"

namespace strobe::testing {

// Not in the anonymous namespace: these names are what a reader of the profile looks for. Each does
// something after its call, so that the call is none in tail position.
__attribute__((noinline)) std::uint64_t Inner(std::uint64_t value) {
  // On the stack: g++ leaves the frame pointer out of a leaf function that uses none, whatever it
  // was told.
  volatile std::uint64_t state = value;
  for (int i = 0; i < 100'000; ++i) state = state * 6364136223846793005 + 1;
  return state;
}
__attribute__((noinline)) std::uint64_t Middle(std::uint64_t value) { return Inner(value) + 1; }
__attribute__((noinline)) std::uint64_t OuterOne(std::uint64_t value) { return Middle(value) + 2; }
__attribute__((noinline)) std::uint64_t OuterTwo(std::uint64_t value) { return Middle(value) + 3; }
__attribute__((noinline)) std::uint64_t Recurse(int depth, std::uint64_t value) {
  return (depth == 0 ? Inner(value) : Recurse(depth - 1, value)) + 1;
}

// Runs Inner while its own frame's saved frame pointer is `garbage`: what a debugger, a JIT or
// hand-written assembly leaves there.
__attribute__((noinline)) std::uint64_t WithSavedFramePointer(Address garbage,
                                                              std::uint64_t value) {
  auto* const saved = static_cast<volatile Address*>(__builtin_frame_address(0));
  const Address before = *saved;
  *saved = garbage;
  value = Inner(value);
  *saved = before;
  return value + 1;
}
__attribute__((noinline)) std::uint64_t CallerOfGarbage(Address garbage, std::uint64_t value) {
  return WithSavedFramePointer(garbage, value) + 2;
}

namespace {

using Exports = std::vector<CollectingExporter::Exported>;

volatile std::uint64_t result_sink;

// Calls step(value) for `cpu_ns` of the thread's CPU time, and longer until there is a sample for
// each 10 ms of it, the longest step of a CPU clock. Nearly all is Inner's. It looks at the clock a
// dozen times only: under Wine one server tells the time and stops threads, so that a thread is
// found mostly where it asks for the time.
template <class Step>
void Work(std::int64_t cpu_ns, Step&& step) {
  const EnoughWalks is_sampled(static_cast<int>(cpu_ns / 10'000'000));
  const std::int64_t begin_ns = ThreadCpuNs();
  std::uint64_t value = 1;
  int steps = 1;
  for (std::int64_t used_ns = 0; used_ns < cpu_ns || !is_sampled;) {
    for (int i = 0; i < steps; ++i) value = step(value);
    const std::int64_t used_before_ns = std::exchange(used_ns, ThreadCpuNs() - begin_ns);
    if (used_ns - used_before_ns < cpu_ns / 10) steps *= 2;
  }
  result_sink = value;
}

// Works for 150 ms of CPU time, and as long again until the profiler has five more stacks that are
// truncated, or that are not. Walks alone do not suffice: a deep one is dropped until the collector
// has built the table that it lacks, and on a busy machine the collector may come to that late.
template <class Traits, class Step>
void WorkUntilSeen(BasicProfiler<Traits>& profiler, bool is_truncated, Step&& step) {
  constexpr std::uint64_t kStacks = 5;
  constexpr int kMostTimes = 20;
  const auto count = [&] {
    const auto ends = profiler.stats().stack_ends;
    const std::uint64_t truncated = ends[static_cast<std::size_t>(StackEnd::kTruncated)];
    return is_truncated ? truncated
                        : std::accumulate(ends.begin(), ends.end(), std::uint64_t{0}) - truncated;
  };
  const std::uint64_t wanted = count() + kStacks;
  for (int i = 0; i < kMostTimes && (i == 0 || count() < wanted); ++i) Work(150'000'000, step);
}

// One session of one thread at 500 Hz. body() or body(profiler) runs on that thread.
template <class Traits, class Body>
Exports Sample(const std::string& thread, Body&& body) {
  CollectingExporter::Take();
  BasicProfiler<Traits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  EXPECT_TRUE(profiler.Start().ok());
  std::thread([&] {
    const Registration registration = profiler.RegisterThread(thread);
    if constexpr (std::invocable<Body&>) {
      body();
    } else {
      body(profiler);
    }
  }).join();
  EXPECT_TRUE(profiler.Stop().ok());
  return CollectingExporter::Take();
}

// Adds up the samples of those stacks whose names, leaf first, begin with `names`.
std::int64_t CpuOfStacks(const PprofProfile& profile, const std::vector<std::string>& names) {
  std::int64_t sum = 0;
  for (const PprofProfile::Sample& sample : profile.samples) {
    const std::vector<std::string> stack = profile.Stack(sample);
    bool matches = stack.size() >= names.size();
    for (std::size_t i = 0; matches && i < names.size(); ++i)
      matches = stack[i] == "strobe::testing::" + names[i];
    if (matches) sum += sample.values.at(1);
  }
  return sum;
}

const PprofProfile::Label* FindLabel(const PprofProfile::Sample& sample, const std::string& key) {
  for (const PprofProfile::Label& label : sample.labels) {
    if (label.key == key) return &label;
  }
  return nullptr;
}

// With the default unwinder, and with frame pointers alone.
template <class Traits>
class Stacks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (kSignalsAreLate)
      GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  }
};
using AllTraits = ::testing::Types<CountedTraits<>, CountedTraits<FramePointerUnwinder>>;
TYPED_TEST_SUITE(Stacks, AllTraits);

TYPED_TEST(Stacks, NamesCallersAndThreads) {
  CollectingExporter::Take();
  BasicProfiler<TypeParam> profiler({.sampling = {.cpu_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  std::uint64_t ids[2] = {};
  std::thread one([&] {
    const Registration registration = profiler.RegisterThread("one");
    ids[0] = NativePlatform::CurrentThreadId();
    Work(200'000'000, OuterOne);
  });
  std::thread two([&] {
    const Registration registration = profiler.RegisterThread("two");
    ids[1] = NativePlatform::CurrentThreadId();
    Work(200'000'000, OuterTwo);
  });
  one.join();
  two.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  const auto profile = ReadPprof(exports[0].bytes);
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(CheckPprof(*profile), "");
  // Nearly all of the 200 ms; half of it would be a wrong profile already.
  EXPECT_GT(CpuOfStacks(*profile, {"Inner", "Middle", "OuterOne"}), 100'000'000);
  EXPECT_GT(CpuOfStacks(*profile, {"Inner", "Middle", "OuterTwo"}), 100'000'000);
  for (const PprofProfile::Sample& sample : profile->samples) {
    const PprofProfile::Label* name = FindLabel(sample, "thread_name");
    const PprofProfile::Label* id = FindLabel(sample, "thread_id");
    ASSERT_NE(name, nullptr);
    ASSERT_NE(id, nullptr);
    const std::vector<std::string> stack = profile->Stack(sample);
    const bool is_one = name->text == "one";
    EXPECT_EQ(id->text, std::to_string(ids[is_one ? 0 : 1]));
    const char* const other = is_one ? "OuterTwo" : "OuterOne";
    EXPECT_THAT(stack, ::testing::Not(::testing::Contains(::testing::HasSubstr(other))));
  }
}

TYPED_TEST(Stacks, RecursionBeyondTheLimitEndsInTruncated) {
  const Exports exports = Sample<TypeParam>("deep", [](BasicProfiler<TypeParam>& profiler) {
    const auto deep = [](std::uint64_t value) { return Recurse(600, value); };
    const auto shallow = [](std::uint64_t value) { return Recurse(100, value); };
    WorkUntilSeen(profiler, /*is_truncated=*/true, deep);
    WorkUntilSeen(profiler, /*is_truncated=*/false, shallow);
  });
  ASSERT_EQ(exports.size(), 1U);
  const Profile& profile = exports[0].profile;
  std::int64_t truncated_ns = 0;
  std::int64_t whole_ns = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::size_t frames = 0;
    VisitFrames(profile, profile.samples[i],
                [&](const Frame& frame) { frames += frame.is_pseudo() ? 0 : 1; });
    const bool is_truncated = HasPseudoFrame(profile, profile.samples[i], PseudoFrame::kTruncated);
    // One that is whole may have just as many frames, on its way down.
    if (is_truncated) {
      EXPECT_EQ(frames, 512U);
    }
    EXPECT_LE(frames, 512U);
    if (is_truncated) truncated_ns += profile.Values(i)[1];
    if (frames > 100 && !is_truncated) whole_ns += profile.Values(i)[1];
  }
  // Half of each. Under Wine a few samples stand for all: see Work.
  const std::int64_t least_ns = NativePlatform::kHasFineCpuClocks ? 75'000'000 : 1'000'000;
  EXPECT_GT(truncated_ns, least_ns);
  EXPECT_GT(whole_ns, least_ns);
  EXPECT_GT(profile.stats.stack_ends[static_cast<std::size_t>(StackEnd::kTruncated)], 0U);
  const auto encoded = ReadPprof(exports[0].bytes);
  ASSERT_TRUE(encoded.has_value());
  EXPECT_THAT(encoded->strings, ::testing::Contains("[truncated]"));
}

TYPED_TEST(Stacks, GarbageInTheChainEndsInBrokenStack) {
  const StackBounds stack_of_main = NativePlatform::CurrentThread().stack;
  const Exports exports = Sample<TypeParam>("garbage", [&] {
    const StackBounds stack = NativePlatform::CurrentThread().stack;
    const Address here = reinterpret_cast<Address>(__builtin_frame_address(0));
    for (const Address garbage :
         {here + 1, here - 65536, here - 0x10000, Address{0x10000}, stack.high - 8, stack.high,
          stack.low, stack_of_main.high - 64, Address{0xDEADBEEFDEADBEE8}, ~Address{7}}) {
      Work(25'000'000, [&](std::uint64_t value) { return CallerOfGarbage(garbage, value); });
    }
  });
  ASSERT_EQ(exports.size(), 1U);
  const auto profile = ReadPprof(exports[0].bytes);
  ASSERT_TRUE(profile.has_value());
  std::int64_t broken_ns = 0;
  for (const PprofProfile::Sample& sample : profile->samples) {
    const std::vector<std::string> stack = profile->Stack(sample);
    if (stack.size() < 2 || stack[1] != "strobe::testing::WithSavedFramePointer") continue;
    // Everything up to the broken link is there, and nothing is invented behind it.
    ASSERT_EQ(stack.size(), 4U) << ::testing::PrintToString(stack);
    EXPECT_EQ(stack[0], "strobe::testing::Inner");
    EXPECT_EQ(stack[2], "strobe::testing::CallerOfGarbage");
    EXPECT_EQ(stack[3], "[broken stack]");
    broken_ns += sample.values.at(1);
  }
  EXPECT_GT(broken_ns, 125'000'000);
  EXPECT_GT(exports[0].profile.stats.stack_ends[static_cast<std::size_t>(StackEnd::kBroken)], 0U);
}

// Frame pointers that lead into the stack, aligned, to words of any value: whatever the stack looks
// like then, nothing crashes and no time is lost.
template <class Traits>
class StacksOfGarbage : public ::testing::Test {};
TYPED_TEST_SUITE(StacksOfGarbage, AllTraits);

TYPED_TEST(StacksOfGarbage, NeverCrash) {
  Span cpu;
  const Exports exports = Sample<TypeParam>("random", [&] {
    const std::int64_t begin_ns = ThreadCpuNs();
    std::mt19937_64 random(1);
    std::vector<Address> targets;
    Address words[512];
    for (Address& word : words) {
      const Address inside = reinterpret_cast<Address>(&words[random() % 512]);
      const Address choices[] = {inside, inside + 3, random(), random() % 8192,
                                 reinterpret_cast<Address>(&Middle) + 5};
      word = choices[random() % 5];
    }
    for (int i = 0; i < 100; ++i) {
      const Address garbage = reinterpret_cast<Address>(&words[random() % 512]);
      Work(3'000'000, [&](std::uint64_t value) { return CallerOfGarbage(garbage, value); });
    }
    result_sink = words[0];
    cpu.least = ThreadCpuNs() - begin_ns;
  });
  EXPECT_GE(SumOfThread(exports, "cpu", "random"), cpu.least);
}

}  // namespace
}  // namespace strobe::testing
