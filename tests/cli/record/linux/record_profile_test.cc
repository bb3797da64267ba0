#include "../../../../src/cli/record/linux/record_profile.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <vector>

#include "../../../../src/cli/commands/command.h"
#include "../../../../src/cli/perf/perf_threads.h"
#include "../../../../src/cli/readers/read_profile.h"
#include "../../../../src/cli/ui/output_file.h"
#include "../../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

class RecordedProfilesTest : public ::testing::Test {
 protected:
  void Write(const std::string& name, MadeProfile::Names stack, std::int64_t samples) {
    MadeProfile made;
    made.Add(stack, {samples});
    const Text bytes = EncodeAs("pprof", made.Finish(), {});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    ASSERT_TRUE(WriteFile((in_.path() / name).string(), *bytes).ok());
  }
  // What has been delivered. What is said is kept.
  bool Finish(std::uint64_t root) {
    ::testing::internal::CaptureStderr();
    const bool is_done = profiles_.Finish(root);
    said_ += ::testing::internal::GetCapturedStderr();
    return is_done;
  }
  void Take() {
    ::testing::internal::CaptureStderr();
    profiles_.Take(in_.path().string());
    said_ += ::testing::internal::GetCapturedStderr();
  }
  std::vector<std::string> Delivered() {
    const auto loaded = ReadProfileFile(path_, nullptr);
    EXPECT_TRUE(loaded.ok()) << loaded.status() << said_;
    return loaded.ok() ? RowsOf(*loaded) : std::vector<std::string>();
  }

  testing::TemporaryDirectory in_;
  testing::TemporaryDirectory out_;
  const std::string path_ = (out_.path() / "sum.folded").string();
  RecordingOutput output_{{.path = path_, .destinations = {}, .shows_top = false}, Terminal()};
  RecordedProfiles profiles_{output_};
  std::string said_;
};

TEST_F(RecordedProfilesTest, AProfileThatCannotBeOpenedStaysUntilItCan) {
  Write("program.42.0.pb.gz", {"main"}, 7);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int first_free = dup(STDERR_FILENO);
  ASSERT_GE(first_free, 0);
  close(first_free);
  const auto take_with = [&](rlim_t files) {
    const rlimit limit{files, before.rlim_max};
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    const bool has_all = profiles_.Take(in_.path().string());
    EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
    return has_all;
  };
  EXPECT_FALSE(take_with(static_cast<rlim_t>(first_free)));
  EXPECT_TRUE(profiles_.empty());
  EXPECT_TRUE(take_with(before.rlim_cur));
  EXPECT_EQ(profiles_.samples(), 7u);
}

TEST_F(RecordedProfilesTest, SaysOnceHowManyProgramsAreNotRecorded) {
  Write("program.42.0.pb.gz", {"main"}, 7);
  EXPECT_TRUE(profiles_.Take(in_.path().string()));
  profiles_.SetRefused(3, "of some reason");
  EXPECT_TRUE(Finish(42));
  EXPECT_THAT(said_, HasSubstr("programs that load no library and are not recorded: 3; of some "
                               "reason\n"));
}

TEST_F(RecordedProfilesTest, ProfilesOfAProcessAreAddedUp) {
  Write("program.7.0.pb.gz", {"main", "f"}, 3);
  Take();
  EXPECT_TRUE(std::filesystem::is_empty(in_.path())) << "what is taken is removed";
  EXPECT_EQ(profiles_.samples(), 3u);
  Write("program.7.1.pb.gz", {"main", "f"}, 4);
  Take();
  EXPECT_EQ(profiles_.samples(), 7u);
  EXPECT_TRUE(Finish(7));
  EXPECT_THAT(Delivered(), ElementsAre("main;f 7"));
}

TEST_F(RecordedProfilesTest, ProcessesAreAddedUpToo) {
  Write("program.7.0.pb.gz", {"main", "f"}, 3);
  Write("child.with.dots.8.0.pb.gz", {"main", "g"}, 4);
  Take();
  EXPECT_TRUE(Finish(7));
  EXPECT_THAT(Delivered(),
              UnorderedElementsAre("[process id=7];[process name=program];main;f 3",
                                   "[process id=8];[process name=child.with.dots];main;g 4"));
}

TEST_F(RecordedProfilesTest, AProcessThatLacksColumnsHasNothingInThem) {
  const ValueType samples{"samples", "count"};
  const ValueType bytes{"alloc_space", "bytes"};
  MadeProfile wide({bytes, samples});
  wide.Add({"main", "f"}, {500, 3});
  MadeProfile narrow({samples});
  narrow.AddMoment(narrow.Add({"main", "g"}, {4}), 10, {1});
  MadeProfile last({samples});
  last.Add({"main", "g"}, {5});
  int process = 7;
  for (MadeProfile* const made : {&narrow, &wide, &last}) {
    const Text text = EncodeAs("pprof", made->Finish(), {});
    ASSERT_TRUE(text.ok()) << text.status();
    const std::string name = "program." + std::to_string(process++) + ".0.pb.gz";
    ASSERT_TRUE(WriteFile((in_.path() / name).string(), *text).ok());
  }
  // Folded stacks have one column.
  const std::string path = (out_.path() / "sum.pb.gz").string();
  RecordingOutput output({.path = path, .destinations = {}, .shows_top = false}, Terminal());
  RecordedProfiles profiles(output);
  profiles.Take(in_.path().string());
  ASSERT_TRUE(profiles.Finish(7));
  const auto loaded = ReadProfileFile(path, nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(RowsOf(*loaded), UnorderedElementsAre("main;g 0 4", "main;f 500 3", "main;g 0 5"));
}

LoadedProfile FromOutside(std::uint64_t process, std::uint64_t other) {
  MadeProfile made;
  for (const std::uint64_t id : {process, other}) {
    made.Add({"main", "h"}, {1},
             LabelSet({{std::string(PerfThreads::kProcessLabel), static_cast<std::int64_t>(id)}}));
  }
  LoadedProfile loaded = made.Finish();
  loaded.profile.program = "outside";
  loaded.profile.process_id = process;
  return loaded;
}

TEST_F(RecordedProfilesTest, WhatWasRecordedFromOutsideIsPartOfTheSum) {
  Write("program.7.0.pb.gz", {"main", "f"}, 3);
  Take();
  profiles_.SetOutside(FromOutside(8, 9));
  profiles_.SetAsked("--alloc");
  EXPECT_TRUE(Finish(7));
  EXPECT_THAT(Delivered(),
              UnorderedElementsAre("[process id=7];[process name=program];main;f 3",
                                   "[process id=8];main;h 1", "[process id=9];main;h 1"));
  EXPECT_THAT(said_, HasSubstr("of 3 processes"));
  EXPECT_THAT(said_, HasSubstr("the CPU time alone, and not what is asked for by --alloc"));
}

TEST_F(RecordedProfilesTest, OneProcessFromOutsideNeedsNoLabel) {
  EXPECT_TRUE(profiles_.empty());
  profiles_.SetOutside(FromOutside(8, 8));
  EXPECT_FALSE(profiles_.empty());
  EXPECT_TRUE(Finish(8));
  EXPECT_THAT(Delivered(), ElementsAre("main;h 2"));
}

TEST_F(RecordedProfilesTest, TimesHaveALimit) {
  const std::string path = (out_.path() / "sum.pb.gz").string();
  RecordingOutput output({.path = path, .destinations = {}, .shows_top = false}, Terminal());
  // Two moments of one value each.
  RecordedProfiles profiles(output, 0, 2 * (sizeof(ProfileMoment) + sizeof(std::int64_t)));
  for (int period = 0; period < 2; ++period) {
    MadeProfile made;
    const std::uint32_t row = made.Add({"main"}, {2});
    made.AddMoment(row, 1'000'000 + period, {1});
    made.AddMoment(row, 2'000'000 + period, {1});
    const Text bytes = EncodeAs("pprof", made.Finish(), {});
    ASSERT_TRUE(bytes.ok()) << bytes.status();
    const std::string name = "program.7." + std::to_string(period) + ".pb.gz";
    ASSERT_TRUE(WriteFile((in_.path() / name).string(), *bytes).ok());
    profiles.Take(in_.path().string());
  }
  ASSERT_TRUE(profiles.Finish(7));
  const auto loaded = ReadProfileFile(path, nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(RowsOf(*loaded), ElementsAre("main 4")) << "the amounts are whole";
  EXPECT_EQ(loaded->profile.moments.size(), 2u);
  EXPECT_THAT(loaded->comments, Contains(HasSubstr("of 2 samples the times are not kept")));
}

TEST(MissingTimeTest, IsSaidWhereItIsMoreThanStartsAndEndsTake) {
  constexpr std::int64_t kSecondNs = 1'000'000'000;
  EXPECT_EQ(RecordedProfiles::MissingNs(kSecondNs, 0, 1), kSecondNs);
  EXPECT_EQ(RecordedProfiles::MissingNs(kSecondNs, kSecondNs / 2, 1), kSecondNs / 2);
  EXPECT_EQ(RecordedProfiles::MissingNs(kSecondNs, kSecondNs * 4 / 5, 1), 0);
  EXPECT_EQ(RecordedProfiles::MissingNs(kSecondNs, 0, 100), 0) << "a hundred short processes";
  EXPECT_EQ(RecordedProfiles::MissingNs(kSecondNs / 20, 0, 1), 0);
  EXPECT_EQ(RecordedProfiles::MissingNs(0, kSecondNs, 1), 0) << "the system has not counted yet";
}

TEST_F(RecordedProfilesTest, OtherFilesStay) {
  for (const char* const name : {".program.7.0.pb.gz", "program.7.pb.gz", "notes.txt",
                                 "program.x.0.pb.gz", "program.7.0.pb.gz.tmp"})
    ASSERT_TRUE(WriteFile((in_.path() / name).string(), "text").ok());
  Take();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(in_.path()), {}), 5);
  EXPECT_EQ(said_, "");
  EXPECT_FALSE(Finish(7)) << "there is nothing";
  EXPECT_THAT(said_, HasSubstr("no profile"));
}

TEST_F(RecordedProfilesTest, AFileThatIsNoProfileIsNamedAndSkipped) {
  ASSERT_TRUE(WriteFile((in_.path() / "program.7.0.pb.gz").string(), "\x1F\x8B broken").ok());
  Write("program.7.1.pb.gz", {"main"}, 1);
  Take();
  EXPECT_THAT(said_, HasSubstr("program.7.0.pb.gz"));
  EXPECT_TRUE(Finish(7));
  EXPECT_THAT(Delivered(), ElementsAre("main 1"));
}

TEST_F(RecordedProfilesTest, ADirectoryThatIsGoneHasNothing) {
  profiles_.Take((in_.path() / "none").string());
  EXPECT_EQ(profiles_.samples(), 0u);
}

}  // namespace
}  // namespace strobe::internal
