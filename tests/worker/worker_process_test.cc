#include "strobe/worker/worker_process.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <string>

#include "can_begin_workers.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

TEST(WorkerProcess, WhatIsNotThereIsNoWorker) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const auto refusal = [](const std::string& command) {
    return WorkerProcess::Begin(command).status();
  };
  EXPECT_EQ(
      refusal(path + "/strobe"),
      absl::UnavailableError("no worker process: " + path + "/strobe: No such file or directory"));
  EXPECT_EQ(refusal(path),
            absl::UnavailableError("no worker process: " + path + ": Permission denied"));
}

// The program's own waits must not meet it.
TEST(WorkerProcess, IsNoChildOfTheProgram) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  absl::StatusOr<WorkerProcess> worker = WorkerProcess::Begin("/bin/true");
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG | __WALL), -1);
  EXPECT_EQ(errno, ECHILD);
  // It ends without a word.
  EXPECT_EQ(worker->socket().Receive(-1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(worker->socket().HasEnded());
  worker->End(0);
  EXPECT_FALSE(worker->socket().is_open());
}

}  // namespace
}  // namespace strobe::internal
