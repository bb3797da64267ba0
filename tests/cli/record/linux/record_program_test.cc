#include "../../../../src/cli/record/linux/record_program.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "../../../../src/cli/ui/exit_status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

class FindProgramTest : public ::testing::Test {
 protected:
  FindProgramTest() : path_before_(std::getenv("PATH")) {}
  ~FindProgramTest() override { testing::SetVariable("PATH", path_before_); }

  std::string Write(const char* name, const std::string& text, bool is_executable = true) {
    const std::filesystem::path path = directory_.path() / name;
    std::ofstream(path, std::ios::binary) << text;
    std::filesystem::permissions(path, is_executable ? std::filesystem::perms::owner_all
                                                     : std::filesystem::perms::owner_read);
    return path.string();
  }

  testing::TemporaryDirectory directory_;
  const std::string path_before_;
};

TEST_F(FindProgramTest, AProgramOfThisSystemCanBeRecorded) {
  for (const RecordedBy how : {RecordedBy::kPreload, RecordedBy::kPerfEvents}) {
    const RecordedProgram program = FindProgram("/proc/self/exe", how);
    EXPECT_EQ(program.path, "/proc/self/exe");
    EXPECT_TRUE(program.refusal.empty() || how == RecordedBy::kPreload) << program.refusal;
  }
}

TEST_F(FindProgramTest, NamesAreLookedUpInPath) {
  const std::string path = Write("a-program", "exit 0\n");
  testing::SetVariable("PATH", "/no/such/folder:" + directory_.path().string());
  EXPECT_EQ(FindProgram("a-program", RecordedBy::kPreload).path, path);
  EXPECT_EQ(FindProgram("a-program", RecordedBy::kPreload).refusal, "");
  const RecordedProgram none = FindProgram("no-program", RecordedBy::kPreload);
  EXPECT_EQ(none.status, kNotFound);
  EXPECT_THAT(none.refusal, HasSubstr("no-program: command not found"));
}

TEST_F(FindProgramTest, WhatIsNoProgramIsExplained) {
  EXPECT_EQ(FindProgram("", RecordedBy::kPreload).status, kNotFound);
  EXPECT_EQ(FindProgram("/no/such/program", RecordedBy::kPreload).status, kNotFound);
  const RecordedProgram directory = FindProgram(directory_.path().string(), RecordedBy::kPreload);
  EXPECT_EQ(directory.status, kCannotRun);
  EXPECT_THAT(directory.refusal, HasSubstr("is a directory"));
  const std::string source = Write("file.cc", "int main() {}\n", false);
  EXPECT_THAT(FindProgram(source, RecordedBy::kPreload).refusal, HasSubstr("is no program"));
  const std::string script = Write("script.sh", "#!/bin/sh\n", false);
  EXPECT_THAT(FindProgram(script, RecordedBy::kPreload).refusal, HasSubstr("chmod +x"));
}

TEST_F(FindProgramTest, OfAScriptTheInterpreterIsJudged) {
  const std::string broken = Write("broken",
                                   "\x7F"
                                   "ELF");
  const std::string script = Write("script", "#! " + broken + " -x\n");
  EXPECT_THAT(FindProgram(script, RecordedBy::kPreload).refusal,
              HasSubstr(broken + " is no complete program"));
  EXPECT_EQ(FindProgram(script, RecordedBy::kPerfEvents).refusal, "")
      << "perf events need no library in it";
  // Interpreters that lead to each other end the search.
  const std::string circle = (directory_.path() / "circle").string();
  Write("circle", "#!" + circle + "\n");
  EXPECT_EQ(FindProgram(circle, RecordedBy::kPreload).refusal, "") << "exec says what is wrong";
}

TEST_F(FindProgramTest, WhatNothingCanBePreloadedIntoIsRefused) {
  std::string header(64, '\0');
  header.replace(0, 6,
                 "\x7F"
                 "ELF\x01\x01");
  EXPECT_THAT(FindProgram(Write("narrow", header), RecordedBy::kPreload).refusal,
              HasSubstr("is a 32-bit program"));
  header[4] = 2;
  header[18] = 40;
  EXPECT_THAT(FindProgram(Write("other", header), RecordedBy::kPreload).refusal,
              HasSubstr("another architecture"));
  header[18] = 62;
  EXPECT_THAT(FindProgram(Write("static", header), RecordedBy::kPreload).refusal,
              HasSubstr("is statically linked"));
  header[56] = '\xFF';  // segments that are not there
  header[57] = '\xFF';
  EXPECT_THAT(FindProgram(Write("cut", header), RecordedBy::kPreload).refusal,
              HasSubstr("is statically linked"));
}

}  // namespace
}  // namespace strobe::internal
