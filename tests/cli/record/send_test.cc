#include "../../../src/cli/record/send.h"

#include <filesystem>
#include <string>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<std::string> Send(const Destination& destination) {
  MadeProfile made;
  made.Add({"main", "f"}, {3});
  return SendProfile(made.Finish(), destination);
}

TEST(SendProfileTest, ABackendThatDoesNotExistIsNamed) {
  const auto sent = Send({.backend = "elsewhere", .url = ""});
  ASSERT_FALSE(sent.ok());
  EXPECT_THAT(std::string(sent.status().message()), HasSubstr("elsewhere"));
}

TEST(SendProfileTest, TheServerHasTheProfile) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "request").generic_string();
  if (!path.starts_with('/')) GTEST_SKIP() << "the URL of a file has a path from the root";
  const auto sent = Send({.backend = "post", .url = "file://" + path});
  if (sent.status().code() == absl::StatusCode::kUnimplemented)
    GTEST_SKIP() << sent.status().message();
  ASSERT_TRUE(sent.ok()) << sent.status();
  EXPECT_TRUE(std::filesystem::exists(path + ".0"));
}

TEST(SendProfileTest, AUrlThatIsNoneIsAnError) {
  const auto sent = Send({.backend = "parca", .url = "ftp://host"});
  if (sent.status().code() == absl::StatusCode::kUnimplemented)
    GTEST_SKIP() << sent.status().message();
  EXPECT_FALSE(sent.ok());
}

}  // namespace
}  // namespace strobe::internal
