#include "strobe/runtime/profiler_core.h"

#include <thread>

#include "gtest/gtest.h"
#include "manual_traits.h"

namespace strobe::internal {
namespace {

TEST(AddExports, AddsCountsAndKeepsTheLastWord) {
  Stats stats;
  stats.exports = 2;
  stats.last_export_error = "disk full";
  stats.last_export_path = "/old";
  stats.partly_named_module = "/lib/x";
  Stats more;
  OutputStats& output = more.outputs.emplace_back();
  output.exports = 1;
  output.exports_failed = 4;
  output.exports_dropped = 2;
  output.amount_dropped = 70;
  more.out_of_memory = 6;
  AddExports(stats, more);
  EXPECT_EQ(stats.exports, 3u);
  EXPECT_EQ(stats.exports_failed, 4u);
  EXPECT_EQ(stats.exports_dropped, 2u);
  EXPECT_EQ(stats.amount_dropped, 70);
  EXPECT_EQ(stats.out_of_memory, 6u);
  EXPECT_EQ(stats.last_export_error, "");
  EXPECT_EQ(stats.last_export_path, "/old") << "where the last success went";
  EXPECT_EQ(stats.partly_named_module, "/lib/x");
  ASSERT_EQ(stats.outputs.size(), 1u);
  EXPECT_EQ(stats.outputs[0].amount_dropped, 70);
}

TEST(ProfilerCore, CountsItsOwnRefusals) {
  testing::ManualPlatform::Reset();
  ProfilerCore<testing::ManualTraits> core({.threads = {.max_threads = 1}});
  {
    const Registration first = core.RegisterThread("one");
    ASSERT_TRUE(first.status().ok());
    EXPECT_FALSE(core.RegisterThread("one again").status().ok());
    testing::ManualPlatform::ActAs(99);
    EXPECT_FALSE(core.RegisterThread("still this thread's links").status().ok());
    testing::ManualPlatform::ActAs(0);
    EXPECT_EQ(core.GetStats().threads_refused, 2u);
    std::thread([&] { EXPECT_FALSE(core.RegisterThread("one too many").status().ok()); }).join();
    EXPECT_EQ(core.GetStats().threads_refused, 3u) << "each refusal once";
  }
  EXPECT_EQ(core.GetStats().threads_registered, 0u);
}

}  // namespace
}  // namespace strobe::internal
