#include "../../src/preload/basic_preload_profiler.h"

#include "gtest/gtest.h"
#include "runtime/manual_traits.h"

namespace strobe::internal {
namespace {

class TestProfiler final : public BasicPreloadProfiler<testing::ManualTraits> {
 public:
  using BasicPreloadProfiler::BasicPreloadProfiler;
};

TEST(BasicPreloadProfilerTest, IsAProfilerOfTheseParts) {
  testing::ManualPlatform::Reset();
  testing::ManualExporter::Take();
  TestProfiler parts{ProfilerOptions()};
  PreloadProfiler& profiler = parts;
  const Registration registration = profiler.RegisterThread("main");
  EXPECT_TRUE(registration.status().ok()) << registration.status();
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_FALSE(profiler.Start().ok()) << "it runs already";
  EXPECT_TRUE(profiler.Flush().ok());
  EXPECT_EQ(testing::ManualExporter::Take().size(), 1u);
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(testing::ManualExporter::Take().size(), 1u);
}

}  // namespace
}  // namespace strobe::internal
