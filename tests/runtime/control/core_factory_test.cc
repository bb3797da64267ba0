#include "strobe/runtime/control/core_factory.h"

#include <memory>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "runtime/manual_traits.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ManualPlatform;
using testing::ManualTraits;

TEST(CoreFactory, ACoreOfAnotherProcessIsKnown) {
  ManualPlatform::Reset();
  const auto factory = MakeCoreFactory<ManualTraits>();
  ASSERT_NE(factory, nullptr);
  const std::unique_ptr<AbstractCore> core = factory->Make({});
  EXPECT_TRUE(core->IsOfThisProcess());
}

TEST(CoreFactory, TheEnvironmentAddsWhatCodeLeftOpen) {
  ManualPlatform::Reset();
  const auto factory = MakeCoreFactory<ManualTraits>();
  testing::SetVariable("STROBE_MAX_THREADS", "17");
  testing::SetVariable("STROBE_RING_BYTES", "none");
  const ProfilerOptions options = factory->WithEnvironment({.sampling = {.cpu_frequency_hz = 11}});
  testing::UnsetVariable("STROBE_MAX_THREADS");
  testing::UnsetVariable("STROBE_RING_BYTES");
  EXPECT_EQ(*options.threads.max_threads, 17);
  EXPECT_EQ(*options.sampling.cpu_frequency_hz, 11);
  EXPECT_THAT(ManualPlatform::With([](auto& state) { return state.lines; }),
              ElementsAre(HasSubstr("STROBE_RING_BYTES")));
}

}  // namespace
}  // namespace strobe::internal
