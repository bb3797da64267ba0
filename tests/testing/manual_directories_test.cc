#include "strobe/testing/fakes/manual_directories.h"

#include <stdexcept>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ManualDirectoriesTest : public ::testing::Test {
 protected:
  ManualDirectories directories_;
  const std::unique_ptr<ProfileDirectory> directory_ = *directories_.Open("/profiles");
};

TEST_F(ManualDirectoriesTest, AFullDiskTakesWhatThereIsRoomFor) {
  directories_.With([](auto& state) { state.room_bytes = 5; });
  const absl::Status full = directory_->Write("six", "123456").status();
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_THAT(std::string(full.message()), HasSubstr("/profiles/six"));
  EXPECT_THAT(directories_.Names("/profiles"), IsEmpty());
  { EXPECT_TRUE(directory_->Write("five", "12345").ok()); }
  EXPECT_TRUE(directory_->Write("again", "12345").ok()) << "a removed file gives its room back";
}

TEST_F(ManualDirectoriesTest, ARenameFailsAsTold) {
  directories_.With([](auto& state) { state.rename_status = absl::UnavailableError("in use"); });
  const auto file = directory_->Write("temporary", "bytes");
  ASSERT_TRUE(file.ok());
  const absl::Status renamed = (*file)->RenameTo("file");
  EXPECT_TRUE(absl::IsUnavailable(renamed)) << renamed;
  EXPECT_THAT(std::string(renamed.message()), HasSubstr("/profiles/file: in use"));
  directories_.With([](auto& state) { state.rename_status = absl::OkStatus(); });
  EXPECT_EQ((*file)->RenameTo("file"), absl::OkStatus());
  EXPECT_EQ(directories_.Read("/profiles/file"), "bytes");
}

TEST_F(ManualDirectoriesTest, AFunctionRunsBeforeARename) {
  directories_.With(
      [](auto& state) { state.before_rename = [] { throw std::runtime_error("thrown"); }; });
  const auto file = directory_->Write("temporary", "bytes");
  ASSERT_TRUE(file.ok());
  EXPECT_THROW((void)(*file)->RenameTo("file"), std::runtime_error);
  EXPECT_THAT(directories_.Names("/profiles"), ElementsAre("temporary"));
}

TEST_F(ManualDirectoriesTest, ADirectoryThatVanishesIsGoneForThoseWhoHaveItOpen) {
  const auto file = directory_->Write("temporary", "bytes");
  directories_.Vanish("/profiles");
  EXPECT_TRUE(absl::IsNotFound((*file)->RenameTo("file")));
  EXPECT_EQ(directories_.Read("/profiles/temporary"), std::nullopt);
  EXPECT_TRUE(absl::IsNotFound(directory_->Write("other", "bytes").status()));
}

TEST_F(ManualDirectoriesTest, ResetMakesAnEmptyDiskThatWorks) {
  directories_.With([](auto& state) { state.room_bytes = 0; });
  directories_.Reset();
  const auto directory = *directories_.Open("/profiles");
  EXPECT_TRUE(directory->Write("file", "bytes").ok());
}

}  // namespace
}  // namespace strobe::testing
