// Tables are built when code is first sampled: Start does not wait for them, and the samples that
// come before they are there are whole.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <thread>

#include "collecting_exporter.h"
#include "named_stacks.h"
#include "strobe/unwind/unwind_table.h"
#include "support/until_seen.h"

namespace strobe::testing {

// Calls back from the C library, whose functions keep no frame pointers.
extern "C" int SpinningOrder(const void* a, const void* b) {
  volatile std::uint64_t state = 1;
  for (int i = 0; i < 200'000; ++i) state = state * 6364136223846793005 + 1;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
__attribute__((noinline)) int SortSlowly() {
  std::array<int, 16> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>((i * 7) % 16);
  std::qsort(numbers.data(), numbers.size(), sizeof(numbers[0]), SpinningOrder);
  return numbers[3];
}

namespace {

// Pieces of text that could have tables.
std::uint64_t PiecesOfAllText() {
  std::uint64_t pieces = 0;
  for (const Module& module : NativePlatform::Modules()) {
    pieces +=
        (module.limit - module.start + UnwindModules::kChunkBytes - 1) / UnwindModules::kChunkBytes;
  }
  return pieces;
}

TEST(FirstSamples, AreWholeAlthoughNothingWasBuiltBefore) {
  if (kSignalsAreLate) GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  // No thread is registered yet, so that nothing can have been sampled.
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_EQ(profiler.stats().unwind_tables, 0U);
  const auto is_sorting = [](const NamedStack& stack) {
    return stack.frames[0] == "SpinningOrder";
  };
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("sorter");
    volatile int sink = 0;
    WorkUntilStack(profiler, is_sorting, [&] { sink = SortSlowly(); });
    // However late the collector comes to build the tables.
    const auto has_tables = [&] {
      const Stats stats = profiler.stats();
      return stats.samples > stats.stacks_deferred;
    };
    WorkUntil(has_tables, [&] { sink = SortSlowly(); });
    static_cast<void>(sink);
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Stats stats = profiler.stats();
  EXPECT_GT(stats.stacks_deferred, 0U);
  EXPECT_LT(stats.stacks_deferred, stats.samples)
      << "once there are tables, no one needs to wait for them";
  EXPECT_EQ(stats.stack_ends[static_cast<std::size_t>(StackEnd::kComplete)], stats.samples)
      << "not one is cut; the ends by StackEnd: " << ::testing::PrintToString(stats.stack_ends);
  EXPECT_GT(stats.unwind_tables, 0U);
  EXPECT_LT(stats.unwind_tables, PiecesOfAllText()) << "most of what is loaded is never executed";
  for (const NamedStack& stack : NamedStacksOf(CollectingExporter::Take())) {
    if (!is_sorting(stack)) continue;
    // Or a sanitizer's function that takes its place.
    EXPECT_THAT(stack.frames, ::testing::Contains(::testing::HasSubstr("qsort")));
    EXPECT_TRUE(stack.Has("SortSlowly")) << ::testing::PrintToString(stack.frames);
  }
}

TEST(FirstSamples, ASessionBeginsWithTheTablesOfTheOneBefore) {
  if (kSignalsAreLate) GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 500}});
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(10'000'000); });
  ASSERT_TRUE(profiler.Stop().ok());
  const std::uint64_t built = profiler.stats().unwind_tables;
  EXPECT_GT(built, 0U);
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_GE(profiler.stats().unwind_tables, built);
  ASSERT_TRUE(profiler.Stop().ok());
}

}  // namespace
}  // namespace strobe::testing
