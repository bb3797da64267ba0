#include "strobe/worker/serve/worker_platform.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../open_area.h"
#include "support/in_child.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

// The program that is served is this process, of which everything is known otherwise.
class WorkerPlatformTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    area_ = *testing::CreateOpenArea(1, 64, 1 << 20);
    ServedProgram program{.process_id = static_cast<std::uint64_t>(getpid()),
                          .name = "name",
                          .signal = 23,
                          .copy_mark = 0,
                          .area = area_,
                          .tables = {}};
    WorkerPlatform::Serve(std::move(program));
  }
  // A thread that has been joined is there for a moment yet.
  static void AwaitEnd(std::uint64_t thread_id) {
    const std::string directory = "/proc/self/task/" + std::to_string(thread_id);
    testing::WaitUntil([&] { return !std::filesystem::exists(directory); });
  }

  static inline SharedArea area_;
};

TEST_F(WorkerPlatformTest, MayNotObserveAProcessOfAnotherUser) {
  EXPECT_TRUE(WorkerPlatform::MayObserve(static_cast<std::uint64_t>(getpid())));
  constexpr uid_t kNobody = 65534;
  if (geteuid() != 0) GTEST_SKIP() << "only root can be another user";
  EXPECT_TRUE(
      testing::HoldsInChild([] { return setuid(kNobody) == 0 && !WorkerPlatform::MayObserve(1); }));
}

TEST_F(WorkerPlatformTest, KnowsTheModulesThatTheLoaderKnows) {
  static_cast<void>(WorkerPlatform::ModuleVersion());
  const std::vector<Module> served = WorkerPlatform::Modules();
  const std::vector<Module> own = LinuxPlatform::Modules();
  ASSERT_FALSE(served.empty());
  EXPECT_EQ(served.front().kind, ModuleKind::kProgram);
  for (const Module& module : own) {
    const auto found = std::ranges::find(served, module.start, &Module::start);
    ASSERT_NE(found, served.end()) << module.path;
    EXPECT_EQ(std::filesystem::weakly_canonical(found->path),
              std::filesystem::weakly_canonical(module.path));
    EXPECT_EQ(found->build_id, module.build_id) << module.path;
    EXPECT_EQ(found->load_bias, module.load_bias) << module.path;
    EXPECT_EQ(found->unwind_address, module.unwind_address) << module.path;
    EXPECT_EQ(found->kind, module.kind) << module.path;
    EXPECT_EQ(found->file_offset, module.file_offset) << module.path;
  }
}

TEST_F(WorkerPlatformTest, ReadsMemoryUpToWhatIsNotMapped) {
  const std::string text = "in memory";
  std::vector<std::uint8_t> read(text.size());
  EXPECT_EQ(WorkerPlatform::ReadMemory(reinterpret_cast<Address>(text.data()), read), text.size());
  EXPECT_EQ(std::memcmp(read.data(), text.data(), text.size()), 0);
  EXPECT_EQ(WorkerPlatform::ReadMemory(16, read), 0U);
}

TEST_F(WorkerPlatformTest, TellsAWaitingThreadFromOneThatRuns) {
  std::atomic<std::uint64_t> waiting{0};
  std::atomic<std::uint64_t> running{0};
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ending = false;
  std::atomic<bool> stop{false};
  std::thread waits([&] {
    std::unique_lock lock(mutex);
    waiting = LinuxPlatform::CurrentThreadId();
    changed.wait(lock, [&] { return is_ending; });
  });
  std::thread runs([&] {
    running = LinuxPlatform::CurrentThreadId();
    while (!stop) {
    }
  });
  testing::WaitUntil([&] { return waiting != 0 && running != 0; });
  std::unique_lock waits_now(mutex);  // so the thread has given it up
  WorkerThreadProbe of_waiting(waiting);
  WorkerThreadProbe of_running(running);
  // The first may wait for a page of its code, and the second be on its way to wait.
  testing::WaitUntil([&] { return of_running.Poll() == ThreadPoll::kRuns; });
  testing::WaitUntil([&] { return of_waiting.Poll() == ThreadPoll::kHasNotRun; });
  EXPECT_GT(WorkerPlatform::ThreadCpuTimeNs(waiting), 0);
  EXPECT_EQ(WorkerPlatform::ThreadCpuTimeNs(LinuxPlatform::CurrentThreadId()), 0)
      << "the worker's own";
  stop = true;
  is_ending = true;
  waits_now.unlock();
  changed.notify_all();
  waits.join();
  runs.join();
}

TEST_F(WorkerPlatformTest, AnEndedThreadsClockStands) {
  std::uint64_t thread_id = 0;
  std::thread([&] { thread_id = LinuxPlatform::CurrentThreadId(); }).join();
  AwaitEnd(thread_id);
  EXPECT_EQ(WorkerPlatform::ThreadCpuTimeNs(thread_id), -1);
  WorkerPlatform::NoteClock(thread_id, 4711);
  EXPECT_EQ(WorkerPlatform::ThreadCpuTimeNs(thread_id), 4711);
  WorkerPlatform::ForgetClock(thread_id);
  EXPECT_EQ(WorkerPlatform::ThreadCpuTimeNs(thread_id), -1);
  EXPECT_FALSE(WorkerPlatform::Interrupt(thread_id, 0, 23, /*was_running=*/true));
}

// Else what a thread uses between the two readings would be in no profile, and not counted as lost.
TEST_F(WorkerPlatformTest, AnExportedPeriodEndsWithTheReadingsOfItsAccounts) {
  std::atomic<std::uint64_t> thread_id{0};
  std::atomic<bool> stop{false};
  std::thread runs([&] {
    thread_id = LinuxPlatform::CurrentThreadId();
    while (!stop) {
    }
  });
  testing::WaitUntil([&] { return thread_id != 0; });
  constexpr std::uint32_t kShared = 5;
  WorkerPlatform::NoteThread(kShared, thread_id);
  WorkerPlatform::NoteClock(thread_id, 0);
  const std::int64_t read_ns = WorkerPlatform::ThreadCpuTimeNs(thread_id);
  testing::WaitUntil(
      [&] { return LinuxPlatform::ThreadCpuTimeNs(thread_id) > read_ns + 1'000'000; });
  WorkerPlatform::EndPeriod(0, {});
  WorkerPlatform::NoteExported(0);
  EXPECT_EQ(area_.At(kShared)->since_cpu_ns, read_ns);
  stop = true;
  runs.join();
  WorkerPlatform::GiveBack(kShared);
  WorkerPlatform::ForgetClock(thread_id);
}

TEST_F(WorkerPlatformTest, AnswersForTheProgram) {
  EXPECT_EQ(WorkerPlatform::ProcessId(), static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(WorkerPlatform::ProgramName(), "name");
  EXPECT_EQ(WorkerPlatform::DefaultSignal(), 23);
  EXPECT_GT(WorkerPlatform::ProcessCpuTimeNs(), 0);
  const auto tables = std::make_shared<const UnwindModules>();
  EXPECT_EQ(WorkerPlatform::ExposeTables(tables), nullptr) << "without memory for tables";
}

}  // namespace
}  // namespace strobe::internal
