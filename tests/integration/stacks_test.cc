// What the exported profile says of stacks: names, callers, threads, and how a stack ends that
// could not be walked to its root.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "collecting_exporter.h"
#include "named_stacks.h"
#include "strobe/platform/native.h"
#include "strobe/scoped_labels.h"
#include "strobe/unwind/frame_pointer_unwinder.h"
#include "support/until_seen.h"

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

// Calls step(value) for tens of milliseconds. Nearly all of that is Inner's. It does not look at
// the clock: under Wine one server tells the time and stops threads, so that a thread is found
// mostly where it asks for the time.
template <class Step>
void Work(Step&& step) {
  std::uint64_t value = 1;
  for (int i = 0; i < 100; ++i) value = step(value);
  result_sink = value;
}

// One session of one thread at 500 Hz. body(profiler) runs on that thread.
template <class Traits, class Body>
Exports Sample(const std::string& thread, Body&& body) {
  CollectingExporter::Take();
  BasicProfiler<Traits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  EXPECT_TRUE(profiler.Start().ok());
  std::thread([&] {
    const Registration registration = profiler.RegisterThread(thread);
    body(profiler);
  }).join();
  EXPECT_TRUE(profiler.Stop().ok());
  return CollectingExporter::Take();
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
struct FramePointerTraits : CollectingTraits {
  using Unwinder = FramePointerUnwinder;
};
using AllTraits = ::testing::Types<CollectingTraits, FramePointerTraits>;
TYPED_TEST_SUITE(Stacks, AllTraits);

TYPED_TEST(Stacks, NamesCallersAndThreads) {
  CollectingExporter::Take();
  BasicProfiler<TypeParam> profiler({.sampling = {.cpu_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  std::uint64_t ids[2] = {};
  const auto run = [&](const char* name, std::uint64_t& id, const char* outer, auto* step) {
    const Registration registration = profiler.RegisterThread(name);
    id = NativePlatform::CurrentThreadId();
    const auto is_whole = [outer](const NamedStack& stack) {
      return stack.Find("Inner") == 0 && stack.Find("Middle") == 1 && stack.Find(outer) == 2;
    };
    for (int i = 0; i < 10; ++i) Work(step);
    WorkUntilStack(profiler, is_whole, [step] { Work(step); });
  };
  std::thread one([&] { run("one", ids[0], "OuterOne", OuterOne); });
  std::thread two([&] { run("two", ids[1], "OuterTwo", OuterTwo); });
  one.join();
  two.join();
  ASSERT_TRUE(profiler.Stop().ok());
  for (const NamedStack& stack : NamedStacksOf(CollectingExporter::Take())) {
    const bool is_one = stack.Label("thread_name") == "one";
    EXPECT_EQ(stack.Label("thread_name"), is_one ? "one" : "two");
    EXPECT_EQ(stack.Label("thread_id"), std::to_string(ids[is_one ? 0 : 1]));
    const char* const other = is_one ? "OuterTwo" : "OuterOne";
    EXPECT_THAT(stack.frames, ::testing::Not(::testing::Contains(::testing::HasSubstr(other))));
  }
}

// The frames of a row that are code.
std::size_t CodeFrames(const Profile& profile, std::size_t row) {
  std::size_t frames = 0;
  VisitFrames(profile, profile.samples[row],
              [&](const Frame& frame) { frames += frame.is_pseudo() ? 0 : 1; });
  return frames;
}

TYPED_TEST(Stacks, RecursionBeyondTheLimitEndsInTruncated) {
  const auto is_truncated = [](const Profile& profile, std::size_t row) {
    return HasPseudoFrame(profile, profile.samples[row], PseudoFrame::kTruncated);
  };
  const auto is_deep_and_whole = [&](const Profile& profile, std::size_t row) {
    return CodeFrames(profile, row) > 100 && !is_truncated(profile, row);
  };
  const Exports exports = Sample<TypeParam>("deep", [&](BasicProfiler<TypeParam>& profiler) {
    const auto deep = [](std::uint64_t value) { return Recurse(600, value); };
    const auto shallow = [](std::uint64_t value) { return Recurse(100, value); };
    // First, so that no deep stack lacks a table: the collector would finish it by a copy of the
    // stack, and large frames fill that before there are 512.
    WorkUntilExported(profiler, is_deep_and_whole, [&] { Work(shallow); });
    WorkUntilExported(profiler, is_truncated, [&] { Work(deep); });
  });
  std::uint64_t truncated = 0;
  std::int64_t samples = 0;
  for (const auto& exported : exports) {
    const Profile& profile = exported.profile;
    truncated += profile.stats.stack_ends[static_cast<std::size_t>(StackEnd::kTruncated)];
    for (std::size_t row = 0; row < profile.samples.size(); ++row) {
      EXPECT_LE(CodeFrames(profile, row), 512U);
      if (!is_truncated(profile, row)) continue;
      EXPECT_EQ(CodeFrames(profile, row), 512U);
      samples += profile.Values(row)[0];
    }
    for (const NamedStack& stack : NamedStacksOf(exported))
      EXPECT_EQ(stack.frames.size() > 512, stack.frames.back() == "[truncated]");
  }
  EXPECT_EQ(static_cast<std::uint64_t>(samples), truncated);
}

TYPED_TEST(Stacks, GarbageInTheChainEndsInBrokenStack) {
  const StackBounds stack_of_main = NativePlatform::CurrentThread().stack;
  const auto is_broken = [](const NamedStack& stack) {
    return stack.Find("WithSavedFramePointer") == 1;
  };
  const Exports exports = Sample<TypeParam>("garbage", [&](BasicProfiler<TypeParam>& profiler) {
    const StackBounds stack = NativePlatform::CurrentThread().stack;
    const Address here = reinterpret_cast<Address>(__builtin_frame_address(0));
    for (const Address garbage :
         {here + 1, here - 65536, here - 0x10000, Address{0x10000}, stack.high - 8, stack.high,
          stack.low, stack_of_main.high - 64, Address{0xDEADBEEFDEADBEE8}, ~Address{7}}) {
      const std::string text = std::to_string(garbage);
      const ScopedLabels labels({{"garbage", text}});
      const auto is_of_this = [&](const NamedStack& broken) {
        return is_broken(broken) && broken.Label("garbage") == text;
      };
      WorkUntilStack(profiler, is_of_this, [garbage] {
        Work([garbage](std::uint64_t value) { return CallerOfGarbage(garbage, value); });
      });
    }
  });
  std::uint64_t broken = 0;
  for (const auto& exported : exports) {
    broken += exported.profile.stats.stack_ends[static_cast<std::size_t>(StackEnd::kBroken)];
    for (const NamedStack& stack : NamedStacksOf(exported)) {
      if (!is_broken(stack)) continue;
      // Everything up to the broken link is there, and nothing is invented behind it.
      ASSERT_EQ(stack.frames.size(), 4U) << ::testing::PrintToString(stack.frames);
      EXPECT_EQ(stack.Find("Inner"), 0);
      EXPECT_EQ(stack.Find("CallerOfGarbage"), 2);
      EXPECT_EQ(stack.frames[3], "[broken stack]");
    }
  }
  EXPECT_GT(broken, 0U);
}

// Frame pointers that lead into the stack, aligned, to words of any value: whatever the stack looks
// like then, nothing crashes and no time is lost.
template <class Traits>
class StacksOfGarbage : public ::testing::Test {};
TYPED_TEST_SUITE(StacksOfGarbage, AllTraits);

TYPED_TEST(StacksOfGarbage, NeverCrash) {
  Span cpu;
  const Exports exports = Sample<TypeParam>("random", [&](BasicProfiler<TypeParam>& profiler) {
    const std::int64_t begin_ns = ThreadCpuNs();
    std::mt19937_64 random(1);
    Address words[512];
    for (Address& word : words) {
      const Address inside = reinterpret_cast<Address>(&words[random() % 512]);
      const Address choices[] = {inside, inside + 3, random(), random() % 8192,
                                 reinterpret_cast<Address>(&Middle) + 5};
      word = choices[random() % 5];
    }
    const auto work = [&] {
      const Address garbage = reinterpret_cast<Address>(&words[random() % 512]);
      Work([garbage](std::uint64_t value) { return CallerOfGarbage(garbage, value); });
    };
    for (int i = 0; i < 20; ++i) work();
    WorkUntil([&] { return profiler.stats().samples > 100; }, work);
    result_sink = words[0];
    cpu.least = ThreadCpuNs() - begin_ns;
  });
  EXPECT_GE(SumOfThread(exports, "cpu", "random"), cpu.least);
}

}  // namespace
}  // namespace strobe::testing
