#include "strobe/core/sample_context.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(ThreadContext, ANewThreadHasNoLabels) {
  const ThreadContext context;
  EXPECT_EQ(context.labels.load(), kNoContext);
}

}  // namespace
}  // namespace strobe
