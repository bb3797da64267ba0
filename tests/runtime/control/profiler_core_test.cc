#include "strobe/runtime/control/profiler_core.h"

#include <thread>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

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
