#include "../../../src/cli/commands/command_line.h"

#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class CommandLineTest : public ::testing::Test {
 protected:
  // The status to exit with; what is said is kept.
  int Run(const std::vector<std::string>& arguments) {
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    const int status = CommandLine().Run(arguments);
    output_ = ::testing::internal::GetCapturedStdout();
    errors_ = ::testing::internal::GetCapturedStderr();
    return status;
  }
  std::string WriteStacks(const char* name, const char* text) {
    const std::string path = (directory_.path() / name).string();
    std::ofstream(path) << text;
    return path;
  }

  testing::TemporaryDirectory directory_;
  std::string output_;
  std::string errors_;
};

TEST_F(CommandLineTest, RunsTheSubcommand) {
  const std::string path = WriteStacks("a.folded", "main;Parse 3\nmain;Write 1\n");
  EXPECT_EQ(Run({"top", path}), 0);
  EXPECT_THAT(output_, HasSubstr("Parse"));
  EXPECT_THAT(errors_, IsEmpty());
}

TEST_F(CommandLineTest, FilesAreAddedUp) {
  const std::string first = WriteStacks("a.folded", "main;Parse 3\n");
  const std::string second = WriteStacks("b.folded", "main;Parse 4\n");
  const std::string sum = (directory_.path() / "sum.folded").string();
  EXPECT_EQ(Run({"merge", first, second, "-o", sum}), 0) << errors_;
  std::ifstream file(sum);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line, "main;Parse 7");
}

TEST_F(CommandLineTest, WrongUseIsSaid) {
  EXPECT_EQ(Run({"tpo"}), kWrongUse);
  EXPECT_THAT(errors_, HasSubstr("did you mean strobe top?"));
  EXPECT_EQ(Run({"top"}), kWrongUse) << "a file is missing";
  EXPECT_EQ(Run({"top", "--no-such-option", "x"}), kWrongUse);
  EXPECT_EQ(Run({}), kWrongUse);
  EXPECT_EQ(Run({WriteStacks("x", "main 1\n")}), kWrongUse);
  EXPECT_THAT(errors_, HasSubstr("did you mean strobe top "));
}

TEST_F(CommandLineTest, AFileThatDoesNotWorkIsNamed) {
  EXPECT_EQ(Run({"top", "/no/such/file"}), kFailed);
  EXPECT_THAT(errors_, HasSubstr("strobe: /no/such/file"));
  EXPECT_THAT(output_, IsEmpty());
}

TEST_F(CommandLineTest, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(Run({"--help"}), 0);
  for (const char* const name : {"top", "diff", "convert", "record", "symbolize", "script"})
    EXPECT_THAT(output_, HasSubstr(name));
  EXPECT_EQ(Run({"--version"}), 0);
  EXPECT_THAT(output_, ::testing::StartsWith("strobe "));
}

TEST_F(CommandLineTest, ASubcommandOfATestsOwnMayFail) {
  CommandLine line;
  line.Add("seven", "Exits with 7", [] { return 7; });
  EXPECT_EQ(line.Run({"seven"}), 7);
  ::testing::internal::CaptureStderr();
  CommandLine other;
  other.AddText("wrong", "Fails", []() -> Text { return absl::NotFoundError("it is gone"); });
  EXPECT_EQ(other.Run({"wrong"}), kFailed);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "strobe: it is gone\n");
}

}  // namespace
}  // namespace strobe::internal
