#include "strobe/platform/process_context.h"

#include <utility>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

TEST(ProcessContextTest, IsPublishedOrTheSystemHasNone) {
  absl::StatusOr<ProcessContext> context = ProcessContext::Publish({});
  if (context.status().code() == absl::StatusCode::kUnimplemented) GTEST_SKIP() << context.status();
  ASSERT_TRUE(context.ok()) << context.status();
  ProcessContext moved = *std::move(context);
  EXPECT_TRUE(moved.Update({.resource = {{"service.name", "shop"}}}).ok());
}

}  // namespace
}  // namespace strobe::testing
