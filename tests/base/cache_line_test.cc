#include "strobe/base/cache_line.h"

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe {
namespace {

static_assert((kCacheLineBytes & (kCacheLineBytes - 1)) == 0, "alignas takes powers of two only");

TEST(CacheLine, IsAWholeNumberOfTheMachinesOwnLines) {
  const std::size_t line_bytes = testing::DataCacheLineBytes();
  if (line_bytes == 0) GTEST_SKIP() << "the system does not say how long its cache lines are";
  EXPECT_EQ(kCacheLineBytes % line_bytes, 0u);
}

}  // namespace
}  // namespace strobe
