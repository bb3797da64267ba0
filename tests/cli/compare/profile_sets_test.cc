#include "../../../src/cli/compare/profile_sets.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

class ProfileSetsTest : public ::testing::Test {
 protected:
  // The path of a new file in the test's folder.
  std::string Make(const std::string& name) {
    const fs::path path = directory_.path() / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "main 1\n";
    return path.string();
  }
  [[nodiscard]] std::string In(const std::string& name) const {
    return (directory_.path() / name).string();
  }
  static std::string ErrorOf(const std::vector<std::string>& runs) {
    return std::string(FindProfiles(runs).status().message());
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(ProfileSetsTest, RunsOfOneBenchmarkHaveOneName) {
  for (const char* file : {"one/BM_A.pb.gz", "one/deep/BM_B.folded", "one/page.html", "one/note",
                           "two/BM_A.pb.gz", "two/.pb.gz"})
    Make(file);
  const auto set = FindProfiles(std::vector{In("one"), In("two")});
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_THAT(*set, ElementsAre(Pair("BM_A", SizeIs(2)), Pair("deep/BM_B", SizeIs(1))));
}

TEST_F(ProfileSetsTest, FilesHaveNoName) {
  const std::vector<std::string> files{Make("one.pb.gz"), Make("two")};
  EXPECT_THAT(*FindProfiles(files), ElementsAre(Pair("", files)));
}

TEST_F(ProfileSetsTest, ErrorsSayWhatIsWrong) {
  const std::string file = Make("one/BM_A.pb.gz");
  Make("empty/note");
  Make("twice/BM_A.pb.gz");
  Make("twice/BM_A.folded");
  EXPECT_THAT(ErrorOf({In("one"), file}), HasSubstr("some runs are files"));
  EXPECT_THAT(ErrorOf({In("empty")}), HasSubstr(".pb.gz"));
  EXPECT_THAT(ErrorOf({In("twice")}), HasSubstr("two profiles are called BM_A"));
  EXPECT_THAT(ErrorOf(std::vector<std::string>(kMaxRuns + 1, file)), HasSubstr("more than 100"));
}

}  // namespace
}  // namespace strobe::internal
