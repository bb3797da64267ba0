#include "../../../src/cli/ui/progress.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

std::string SaidBy(const Terminal& terminal) {
  ::testing::internal::CaptureStderr();
  {
    Progress progress(terminal);
    progress.Read("/a", 1 << 20);
    progress.Print("working");
    progress.Clear();
  }
  return ::testing::internal::GetCapturedStderr();
}

TEST(ProgressTest, WhatIsQuickIsNotSaid) { EXPECT_EQ(SaidBy({.shows_errors = true}), ""); }

TEST(ProgressTest, NothingIsSaidWithoutATerminal) { EXPECT_EQ(SaidBy({.shows_output = true}), ""); }

}  // namespace
}  // namespace strobe::internal
