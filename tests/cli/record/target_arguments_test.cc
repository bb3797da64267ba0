#include "../../../src/cli/record/target_arguments.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Parsed {
  RecordOptions options;
  std::string target, refusal;
};

Parsed Parse(const std::string& arguments) {
  CLI::App app;
  app.name("top");
  Parsed parsed;
  DeclareTargets(app, parsed.options);
  app.parse(arguments, false);
  parsed.target = RunningTarget(app);
  parsed.refusal = JudgeTargets(app, parsed.options);
  return parsed;
}

TEST(TargetArgumentsTest, NameWhatRuns) {
  const Parsed processes = Parse("-p 12,34 --no-children");
  EXPECT_THAT(processes.options.processes, ElementsAre(12, 34));
  EXPECT_FALSE(processes.options.has_children);
  EXPECT_EQ(processes.target, "--process");
  EXPECT_EQ(processes.refusal, "");
  EXPECT_THAT(Parse("--tid 12").options.threads, ElementsAre(12));
  EXPECT_TRUE(Parse("-a").options.is_machine);
  const Parsed group = Parse("--cgroup web");
  EXPECT_EQ(group.options.cgroup, "web");
  EXPECT_TRUE(group.options.is_machine);
  EXPECT_EQ(group.target, "--cgroup");
  EXPECT_EQ(Parse("").target, "");
}

TEST(TargetArgumentsTest, AreOfOneKind) {
  for (const char* const two : {"-p 1 --tid 2", "-p 1 -a", "--tid 2 --cgroup web"})
    EXPECT_THAT(Parse(two).refusal, StartsWith("top: -p, --tid and -a are each")) << two;
  EXPECT_THAT(Parse("-a --no-children").refusal, HasSubstr("see -p"));
}

}  // namespace
}  // namespace strobe::internal
