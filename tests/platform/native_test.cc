#include "strobe/platform/native.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

static_assert(Platform<NativePlatform>);

TEST(NativePlatform, IsOneThatWorksWhereThisTestRuns) {
#if defined(STROBE_DISABLED)
  EXPECT_FALSE(NativePlatform::Available().ok());
#else
  EXPECT_TRUE(NativePlatform::Available().ok()) << NativePlatform::Available();
  EXPECT_NE(NativePlatform::CurrentThread().id, 0u);
#endif
}

}  // namespace
}  // namespace strobe
