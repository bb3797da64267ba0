#include "strobe/runtime/code/published_code.h"

#include <gtest/gtest.h>

namespace strobe::internal {
namespace {

TEST(PublishedCode, AtFirstNothingIsKnownOfAnyCode) {
  const PublishedCode code;
  EXPECT_EQ(code.generation, 0u);
  EXPECT_EQ(code.tables, nullptr);
}

}  // namespace
}  // namespace strobe::internal
