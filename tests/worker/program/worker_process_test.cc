#include "strobe/worker/program/worker_process.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../can_begin_workers.h"
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

// Or a process that was to be a worker, and is none, would have one, and that the next.
TEST(WorkerProcess, BeginsNoProfilerOfItsOwn) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  const std::string command = (directory.path() / "worker").string();
  const std::string written = (directory.path() / "environment").string();
  std::ofstream(command) << "#!/bin/sh\nexec env >'" << written << "'\n";
  std::filesystem::permissions(command, std::filesystem::perms::owner_all);
  const std::vector<std::pair<std::string, std::string>> variables = {{"LD_PRELOAD", "libm.so.6"},
                                                                      {"STROBE_RECORD_WORKER", "1"},
                                                                      {"STROBE_ENABLED", "1"},
                                                                      {"STROBE_TEST_KEPT", "kept"}};
  for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
  absl::StatusOr<WorkerProcess> worker = WorkerProcess::Begin(command);
  for (const auto& [name, value] : variables) unsetenv(name.c_str());
  ASSERT_TRUE(worker.ok()) << worker.status();
  // It has ended.
  EXPECT_EQ(worker->socket().Receive(-1).status().code(), absl::StatusCode::kUnavailable);
  std::ifstream file(written);
  std::set<std::string> lines;
  for (std::string line; std::getline(file, line);) {
    EXPECT_FALSE(line.starts_with("LD_PRELOAD=") || line.starts_with("STROBE_RECORD_")) << line;
    if (line.starts_with("STROBE_ENABLED=") || line.starts_with("STROBE_TEST_KEPT="))
      lines.insert(line);
  }
  EXPECT_EQ(lines, (std::set<std::string>{"STROBE_ENABLED=0", "STROBE_TEST_KEPT=kept"}));
}

}  // namespace
}  // namespace strobe::internal
