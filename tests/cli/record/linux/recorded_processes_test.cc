#include "../../../../src/cli/record/linux/recorded_processes.h"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// Whom it awaits is tested with real workers in tests/preload/record_test.py.
TEST(RecordedProcessesTest, WithoutAWorkerNobodyIsAwaited) {
  constexpr std::chrono::minutes kLong(10);
  const auto begin = std::chrono::steady_clock::now();
  RecordedProcesses("STROBE_TEST_NO_SUCH=variable").AwaitWorkers(kLong);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong);
}

TEST(RecordedProcessesTest, FindsChildrenByTheirVariable) {
  const std::string variable = absl::StrCat("STROBE_TEST_RECORDING=", getpid());
  const RecordedProcesses processes(variable);
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    close(ends[1]);
    const std::array<char*, 2> environment{const_cast<char*>(variable.c_str()), nullptr};
    execle("/bin/cat", "cat", nullptr, environment.data());
    _exit(1);
  }
  close(ends[0]);
  const auto id = static_cast<std::uint64_t>(child);
  while (!processes.IsOne(id)) ASSERT_EQ(waitpid(child, nullptr, WNOHANG), 0);
  EXPECT_THAT(processes.Programs(), Contains(id));
  EXPECT_THAT(RecordedProcesses("STROBE_TEST_RECORDING=other").Programs(), Not(Contains(id)));
  EXPECT_THAT(processes.RunningChildren(), HasSubstr(absl::StrCat("cat (", child, ")")));
  close(ends[1]);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_FALSE(processes.IsOne(id));
}

}  // namespace
}  // namespace strobe::internal
