#include "../../../src/cli/record/recording_output.h"

#include <filesystem>
#include <string>
#include <utility>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

LoadedProfile SmallProfile() {
  MadeProfile made;
  made.profile().program = "program";
  made.profile().process_id = 12;
  made.Add({"main", "Parse"}, {3});
  return made.Finish();
}

OutputOptions ToPath(const std::string& path, bool shows_top = true) {
  return {.path = path, .destinations = {}, .shows_top = shows_top};
}

class RecordingOutputTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string PathOf(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  testing::TemporaryDirectory directory_;
};

TEST_F(RecordingOutputTest, TheNameDecidesTheFormat) {
  const auto check = [](const std::string& path) {
    return RecordingOutput(ToPath(path), Terminal()).Check();
  };
  EXPECT_TRUE(check("a.pb.gz").ok());
  EXPECT_TRUE(check("a.folded").ok());
  EXPECT_TRUE(check("folder/").ok());
  EXPECT_TRUE(check(directory_.path().string()).ok());
  EXPECT_EQ(check("a.unknown").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(check("a%x.pb.gz").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(check("-").message()), HasSubstr("-o FILE"));
}

TEST_F(RecordingOutputTest, APlaceThatTakesNoFileIsRefusedBefore) {
  const absl::Status status = RecordingOutput(ToPath(PathOf("none/a.pb.gz")), Terminal()).Check();
  EXPECT_FALSE(status.ok() || absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("none"));
  // The check leaves nothing behind.
  EXPECT_TRUE(RecordingOutput(ToPath(PathOf("a.pb.gz")), Terminal()).Check().ok());
  EXPECT_TRUE(RecordingOutput(ToPath(PathOf("new/folder/")), Terminal()).Check().ok());
  EXPECT_TRUE(std::filesystem::is_empty(directory_.path()));
}

TEST_F(RecordingOutputTest, PatternsInTheNameAreFilledIn) {
  RecordingOutput output(ToPath(PathOf("%n-%p-%%-%t.folded"), false), Terminal());
  LoadedProfile loaded = SmallProfile();
  loaded.profile.time_ns = 86'400'000'000'000;
  EXPECT_TRUE(output.Deliver(std::move(loaded), 1));
  EXPECT_TRUE(std::filesystem::exists(PathOf("program-12-%-19700102T000000Z.folded")));
}

TEST_F(RecordingOutputTest, WhatIsInADirectoryDoesNotRefuseIt) {
  std::filesystem::create_directory(PathOf("strobe"));
  EXPECT_TRUE(RecordingOutput(ToPath(directory_.path().string()), Terminal()).Check().ok());
}

TEST_F(RecordingOutputTest, ProfilesOfOneRecordingNeverReplaceEachOther) {
  EXPECT_TRUE(MayHavePeriods(ToPath("")) && MayHavePeriods(ToPath("folder/")) &&
              MayHavePeriods(ToPath("a-%t.pb.gz")));
  EXPECT_FALSE(MayHavePeriods(ToPath("a.pb.gz")) || MayHavePeriods(ToPath("a-%%t.pb.gz")));
  // Two that began in the same second.
  RecordingOutput by_time(ToPath(PathOf("%t.folded"), false), Terminal());
  EXPECT_TRUE(by_time.Deliver(SmallProfile(), 1) && by_time.Deliver(SmallProfile(), 1));
  EXPECT_TRUE(std::filesystem::exists(PathOf("19700101T000000Z.folded")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("19700101T000000Z-1.folded")));
  // Each file is removed as soon as it is written.
  RecordingOutput taken(ToPath(PathOf("new/"), false), Terminal());
  for (std::size_t i = 0; i < RecordingOutput::kMostFiles + 2; ++i) {
    ASSERT_TRUE(taken.WriteToDirectory(SmallProfile()).ok());
    ASSERT_TRUE(taken.Deliver(SmallProfile(), 1));
    const std::string path = PathOf("new/program.12." + std::to_string(i) + ".pb.gz");
    ASSERT_TRUE(std::filesystem::remove(path)) << path;
  }
}

TEST_F(RecordingOutputTest, TheOldestFilesOfManyAreRemoved) {
  RecordingOutput output(ToPath(PathOf("new/"), false), Terminal());
  for (std::size_t i = 0; i < RecordingOutput::kMostFiles + 2; ++i) {
    ASSERT_TRUE(output.WriteToDirectory(SmallProfile()).ok());
    ASSERT_TRUE(output.Deliver(SmallProfile(), 1));
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf("new/program.12.1.pb.gz")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("new/program.12.2.pb.gz")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("new/program.12.1001.pb.gz")));
}

TEST_F(RecordingOutputTest, AProfileIsWrittenAndItsFirstRowsAreSaid) {
  RecordingOutput output(ToPath(PathOf("a.folded")), Terminal());
  ::testing::internal::CaptureStderr();
  const bool is_whole = output.Deliver(SmallProfile(), 1);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(is_whole) << said;
  EXPECT_TRUE(std::filesystem::exists(PathOf("a.folded")));
  EXPECT_THAT(said, HasSubstr("a.folded"));
  EXPECT_THAT(said, HasSubstr("Parse"));
}

TEST_F(RecordingOutputTest, ADirectoryGetsAFileOfItsOwnForEachProcess) {
  RecordingOutput output(ToPath(PathOf("new/")), Terminal());
  EXPECT_TRUE(output.has_directory());
  ASSERT_TRUE(output.WriteToDirectory(SmallProfile()).ok());
  ASSERT_TRUE(output.WriteToDirectory(SmallProfile()).ok());
  EXPECT_TRUE(std::filesystem::exists(PathOf("new/program.12.0.pb.gz")));
  EXPECT_TRUE(std::filesystem::exists(PathOf("new/program.12.1.pb.gz"))) << "none is overwritten";
}

TEST_F(RecordingOutputTest, ErrorsAreSaid) {
  RecordingOutput output(ToPath(PathOf("none/a.pb.gz"), false), Terminal());
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(output.Deliver(SmallProfile(), 1));
  EXPECT_FALSE(output.Deliver(absl::NotFoundError("no profile"), 1));
  EXPECT_EQ(output.Fail("it failed"), kFailed);
  EXPECT_EQ(output.Fail("not there", kNotFound), kNotFound);
  output.Print(1, 2, 3);
  const std::string said = ::testing::internal::GetCapturedStderr();
  for (const char* const text : {"a.pb.gz", "strobe: no profile\n", "strobe: it failed\n"})
    EXPECT_THAT(said, HasSubstr(text));
  EXPECT_EQ(said.find("recording:"), std::string::npos) << "there is no terminal";
}

TEST_F(RecordingOutputTest, WhatNoServerTakesIsInAFile) {
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  RecordingOutput output(
      {.path = "", .destinations = {{.backend = "elsewhere", .url = ""}}, .shows_top = false},
      Terminal());
  ::testing::internal::CaptureStderr();
  const bool is_whole = output.Deliver(SmallProfile(), 1);
  const std::string said = ::testing::internal::GetCapturedStderr();
  std::filesystem::current_path(before);
  EXPECT_FALSE(is_whole);
  EXPECT_THAT(said, HasSubstr("elsewhere"));
  EXPECT_TRUE(std::filesystem::exists(PathOf("program.12.0.pb.gz"))) << said;
}

}  // namespace
}  // namespace strobe::internal
