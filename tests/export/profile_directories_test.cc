#include "strobe/export/profile_directories.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(NoProfileDirectories, NothingIsOpenedAndTheErrorSaysWhy) {
  constexpr NoProfileDirectories kNone;
  const absl::Status status = kNone.Open("/profiles").status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("/profiles"));
  EXPECT_EQ(kNone.AbsolutePath("profiles"), "profiles");
}

}  // namespace
}  // namespace strobe
