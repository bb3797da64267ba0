#include "../../../../src/cli/worker/linux/worker_output.h"

#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

constexpr const char* kVariable = "STROBE_WORKER_OUTPUT";

class WorkerOutputTest : public ::testing::Test {
 protected:
  WorkerOutputTest() { testing::UnsetVariable(kVariable); }
  ~WorkerOutputTest() override { testing::UnsetVariable(kVariable); }
};

TEST_F(WorkerOutputTest, FilesAreTheDefault) {
  EXPECT_TRUE(ServeWithAskedOutput().ok());
  testing::SetVariable(kVariable, "files");
  const auto serve = ServeWithAskedOutput();
  ASSERT_TRUE(serve.ok());
  EXPECT_TRUE(*serve != nullptr);
}

TEST_F(WorkerOutputTest, EachServerThatIsListedIsThere) {
  std::vector<std::string> names = absl::StrSplit(HttpOutputs(), ", ", absl::SkipEmpty());
  for (const std::string& name : names) {
    EXPECT_TRUE(ServeWithHttpOutput(name) != nullptr) << name;
    testing::SetVariable(kVariable, name);
    EXPECT_TRUE(ServeWithAskedOutput().ok()) << name;
  }
}

TEST_F(WorkerOutputTest, AnotherNameIsRefusedWithThoseThatThereAre) {
  EXPECT_TRUE(ServeWithHttpOutput("elsewhere") == nullptr);
  testing::SetVariable(kVariable, "elsewhere");
  const auto serve = ServeWithAskedOutput();
  ASSERT_FALSE(serve.ok());
  EXPECT_THAT(std::string(serve.status().message()),
              ::testing::StartsWith("STROBE_WORKER_OUTPUT=elsewhere: expected one of files"));
}

}  // namespace
}  // namespace strobe::internal
