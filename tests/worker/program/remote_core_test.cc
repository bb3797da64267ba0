#include "strobe/worker/program/remote_core.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "../can_begin_workers.h"
#include "platform/test_system.h"
#include "strobe/platform/linux/own_files.h"
#include "support/in_child.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

// Uses CPU time until the condition holds.
template <class Condition>
void BurnUntil(const Condition& condition) {
  volatile std::uint64_t value = 1;
  testing::WorkUntil(condition, [&] {
    for (int i = 0; i < 100'000; ++i) value = value * 6364136223846793005 + 1;
  });
}

std::size_t FilesIn(const std::filesystem::path& directory) {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files += entry.path().string().ends_with(".pb.gz") ? 1 : 0;
  return files;
}

ProfilerOptions SampledHere(const testing::TemporaryDirectory& directory) {
  return {.sampling = {.max_overhead = 1},
          .exporter = {.directory = directory.path().string()},
          .worker = {.command = "/nonexistent", .fallback = WorkerFallback::kInProcess}};
}

bool HasWalks(const Stats& stats) {
  std::uint64_t walks = 0;
  for (const std::uint64_t ends : stats.stack_ends) walks += ends;
  return walks > 10;
}

// What is no worker leaves the program as it was: its threads register, and end.
TEST(RemoteCore, WithoutAWorkerTheProgramGoesOn) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  RemoteCore core({.worker = {.command = "/bin/true"}}, &ServeByDefault);
  {
    const Registration before = core.RegisterThread("before");
    EXPECT_TRUE(before.status().ok()) << before.status();
    EXPECT_EQ(core.Start().code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(core.Diagnose().find("has not answered"), std::string::npos) << core.Diagnose();
    EXPECT_EQ(core.GetStats().threads_registered, 1U);
  }
  EXPECT_EQ(core.GetStats().threads_registered, 0U);
  EXPECT_TRUE(core.RegisterThread("again").status().ok());
  EXPECT_EQ(core.Stop().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(core.Flush().code(), absl::StatusCode::kFailedPrecondition);
}

// The threads that have registered stay registered, and each session has a profile.
TEST(RemoteCore, AThreadOfTheProgramTakesTheWorkersPlace) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  for (const char* command : {"/bin/true", "/nonexistent"}) {
    RemoteCore core({.sampling = {.max_overhead = 1},
                     .exporter = {.directory = directory.path().string()},
                     .worker = {.command = command, .fallback = WorkerFallback::kInProcess}},
                    &ServeByDefault);
    const Registration before = core.RegisterThread("before");
    ASSERT_TRUE(before.status().ok()) << before.status();
    for (int session = 0; session < 2; ++session) {
      const std::size_t files = FilesIn(directory.path());
      ASSERT_TRUE(core.Start().ok()) << command << core.Diagnose();
      EXPECT_NE(core.Diagnose().find("A thread of the program serves"), std::string::npos)
          << core.Diagnose();
      BurnUntil([&] { return HasWalks(core.GetStats()); });
      EXPECT_TRUE(core.Flush().ok());
      EXPECT_EQ(FilesIn(directory.path()), files + 1);
      EXPECT_TRUE(core.Stop().ok());
      EXPECT_EQ(FilesIn(directory.path()), files + 2);
    }
  }
}

// A number is another file there, or none: that says nothing of the worker.
TEST(RemoteCore, AThreadWithFilesOfItsOwnDisturbsNoSession) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  RemoteCore core(SampledHere(directory), &ServeByDefault);
  ASSERT_TRUE(core.Start().ok()) << core.Diagnose();
  std::thread([&] {
    if (!TakeOwnFiles()) return;
    const Registration registration = core.RegisterThread("own files");
    EXPECT_TRUE(registration.status().ok()) << registration.status();
    BurnUntil([&] { return HasWalks(core.GetStats()); });
    EXPECT_EQ(core.Flush().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(core.Stop().code(), absl::StatusCode::kFailedPrecondition);
  }).join();
  EXPECT_NE(core.Diagnose().find(" serves"), std::string::npos) << core.Diagnose();
  EXPECT_TRUE(core.Stop().ok());
  EXPECT_EQ(core.GetStats().exports_dropped, 0U);
  EXPECT_EQ(FilesIn(directory.path()), 1U);
}

// The other threads cannot reach such a session, and end it.
TEST(RemoteCore, WhatAThreadWithFilesOfItsOwnHasBegunIsEndedByOthers) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  RemoteCore core(SampledHere(directory), &ServeByDefault);
  std::thread([&] {
    if (!TakeOwnFiles()) return;
    EXPECT_TRUE(core.Start().ok());
  }).join();
  static_cast<void>(core.Stop());
  ASSERT_TRUE(core.Start().ok()) << core.Diagnose();
  EXPECT_TRUE(core.Stop().ok());
}

// Of the program's mappings of the channels, those that a core has.
int ChannelsInCores() {
  std::ifstream smaps("/proc/self/smaps");
  bool is_area = false;
  int count = 0;
  for (std::string line; std::getline(smaps, line);) {
    if (line.find(" /memfd:strobe-channels") != std::string::npos) is_area = true;
    if (!line.starts_with("VmFlags:")) continue;
    count += is_area && line.find(" dd") == std::string::npos ? 1 : 0;
    is_area = false;
  }
  return count;
}

TEST(RemoteCore, TheOptionPutsRingsIntoCores) {
  const auto count_with = [](bool rings_in_cores) {
    return testing::RunInChild([&] {
      RemoteCore core({.threads = {.rings_in_cores = rings_in_cores}});
      const Registration registration = core.RegisterThread("main");
      _exit(registration.status().ok() ? ChannelsInCores() : 100);
    });
  };
  EXPECT_EQ(WEXITSTATUS(count_with(false)), 0);
  EXPECT_EQ(WEXITSTATUS(count_with(true)), 1);
}

// A slim program has no parts to go on with.
TEST(RemoteCore, WithoutPartsThereIsNoFallback) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  RemoteCore core({.worker = {.command = "/nonexistent", .fallback = WorkerFallback::kInProcess}});
  EXPECT_EQ(core.Start().code(), absl::StatusCode::kUnavailable);
}

TEST(RemoteCore, ASignalBeginsASessionAndTheNextOneEndsIt) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  const testing::TemporaryDirectory directory;
  RemoteCore core({.sampling = {.toggle_signal = SIGUSR2, .max_overhead = 1},
                   .exporter = {.directory = directory.path().string()},
                   .worker = {.command = "/nonexistent", .fallback = WorkerFallback::kInProcess}},
                  &ServeByDefault);
  ASSERT_TRUE(core.ToggleStatus().ok()) << core.ToggleStatus();
  const Registration registration = core.RegisterThread("main");
  EXPECT_EQ(core.Flush().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
  BurnUntil([&] { return HasWalks(core.GetStats()); });
  ASSERT_EQ(kill(getpid(), SIGUSR2), 0);
  BurnUntil([&] { return FilesIn(directory.path()) == 1; });
  BurnUntil([&] { return absl::IsFailedPrecondition(core.Flush()); });
}

}  // namespace
}  // namespace strobe::internal
