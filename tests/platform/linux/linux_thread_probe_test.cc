#include "strobe/platform/linux/linux_thread_probe.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/arch/registers.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/testing/latch.h"

namespace strobe::internal {
namespace {

using testing::Latch;

// A thread that computes until the object ends.
class BusyThread {
 public:
  // On that CPU, or on any.
  explicit BusyThread(int cpu = -1)
      : thread_([this, cpu] {
          if (cpu >= 0) PinTo(cpu);
          id_ = LinuxPlatform::CurrentThread().id;
          begun_.count_down();
          while (!is_ending_.load(std::memory_order_relaxed)) {
          }
        }) {
    begun_.wait();
  }
  ~BusyThread() {
    is_ending_ = true;
    thread_.join();
  }
  [[nodiscard]] std::uint64_t id() const { return id_; }

  static void PinTo(int cpu) {
    cpu_set_t cpus;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    EXPECT_EQ(pthread_setaffinity_np(pthread_self(), sizeof(cpus), &cpus), 0);
  }

 private:
  Latch begun_{1};
  std::atomic<bool> is_ending_{false};
  std::uint64_t id_ = 0;
  std::thread thread_;
};

// A thread that waits until the object ends.
class WaitingThread {
 public:
  WaitingThread()
      : thread_([this] {
          id_ = LinuxPlatform::CurrentThread().id;
          begun_.count_down();
          end_.wait();
        }) {
    begun_.wait();
    while (LinuxThreadProbe(id_).WaitCount() < 1) std::this_thread::yield();
  }
  ~WaitingThread() {
    end_.count_down();
    thread_.join();
  }
  [[nodiscard]] std::uint64_t id() const { return id_; }

 private:
  Latch begun_{1};
  Latch end_{1};
  std::uint64_t id_ = 0;
  std::thread thread_;
};

void Sleep(std::int64_t time_ns) {
  const timespec time{.tv_sec = 0, .tv_nsec = time_ns};
  nanosleep(&time, nullptr);
}

// True if the thread was on a CPU when the calling thread woke.
bool WasOnCpu(LinuxThreadProbe& probe, const LinuxInstant& instant) {
  const ThreadLook look = probe.Look();
  return look == ThreadLook::kRuns || (look == ThreadLook::kHasRun && probe.WasDisplaced(instant));
}

// How often of `instants` the thread was found on a CPU.
int CountOnCpu(std::uint64_t thread_id, int instants) {
  LinuxThreadProbe probe(thread_id);
  int count = 0;
  for (int i = 0; i < instants; ++i) {
    Sleep(1'000'000);
    const LinuxInstant instant;
    count += WasOnCpu(probe, instant) ? 1 : 0;
  }
  return count;
}

TEST(LinuxThreadProbe, AThreadThatComputesIsOnACpu) {
  const BusyThread busy;
  EXPECT_GT(CountOnCpu(busy.id(), 200), 20) << "at least, on a machine that has other work, too";
}

TEST(LinuxThreadProbe, AThreadThatWaitsIsNotOnACpu) {
  const WaitingThread waiting;
  CountOnCpu(waiting.id(), 1);  // it may still be on its way to its wait
  EXPECT_EQ(CountOnCpu(waiting.id(), 100), 0);
}

// The calling thread takes the CPU from the other one each time it wakes: the other one does not
// run then, but it did.
TEST(LinuxThreadProbe, AThreadWhoseCpuTheCallerHasTakenWasOnIt) {
  const int cpu = sched_getcpu();
  std::thread([cpu] {
    BusyThread::PinTo(cpu);
    LinuxPlatform::WakeInTime();
    const BusyThread busy(cpu);
    EXPECT_GT(CountOnCpu(busy.id(), 200), 20);
  }).join();
}

// One of two threads had the CPU, and the other one waited for it.
TEST(LinuxThreadProbe, AThreadThatWaitsForACpuIsNotOnIt) {
  const int cpu = sched_getcpu();
  std::thread([cpu] {
    BusyThread::PinTo(cpu);
    LinuxPlatform::WakeInTime();
    const BusyThread one(cpu);
    const BusyThread other(cpu);
    LinuxThreadProbe probes[] = {LinuxThreadProbe(one.id()), LinuxThreadProbe(other.id())};
    int both = 0;
    int either = 0;
    for (int i = 0; i < 200; ++i) {
      Sleep(1'000'000);
      const LinuxInstant instant;
      const int count =
          (WasOnCpu(probes[0], instant) ? 1 : 0) + (WasOnCpu(probes[1], instant) ? 1 : 0);
      both += count == 2 ? 1 : 0;
      either += count == 1 ? 1 : 0;
    }
    EXPECT_GT(either, 20);
    EXPECT_EQ(both, 0);
  }).join();
}

TEST(LinuxThreadProbe, AThreadThatIsGoneIsNotOnACpu) {
  std::uint64_t id = 0;
  std::thread([&] { id = LinuxPlatform::CurrentThread().id; }).join();
  LinuxThreadProbe probe(id);
  EXPECT_NE(probe.Look(), ThreadLook::kRuns);
  EXPECT_FALSE(probe.WasDisplaced(LinuxInstant()));
  EXPECT_EQ(probe.WaitCount(), -1);
}

TEST(LinuxThreadProbe, WaitsAreCountedAndLossesOfTheCpuAreNot) {
  constexpr int kWaits = 50;
  const std::uint64_t id = LinuxPlatform::CurrentThread().id;
  LinuxThreadProbe probe(id);
  const std::int64_t before = probe.WaitCount();
  ASSERT_GE(before, 0);
  for (int i = 0; i < kWaits; ++i) Sleep(10'000);
  const std::int64_t waits = probe.WaitCount() - before;
  EXPECT_GE(waits, kWaits);
  EXPECT_LE(waits, kWaits + 5);
}

std::size_t OpenFiles() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& file : std::filesystem::directory_iterator("/proc/self/fd"))
    ++count;
  return count;
}

TEST(LinuxThreadProbe, TellsWhereAThreadWaitsAndThatOneRuns) {
  using Kind = ThreadActivity::Kind;
  const WaitingThread waiting;
  LinuxThreadProbe of_waiting(waiting.id());
  ThreadActivity wait = of_waiting.Observe();
  while (wait.kind == Kind::kReady) wait = of_waiting.Observe();
  ASSERT_EQ(wait.kind, Kind::kWaits);
  // The instruction after a system call: "syscall", 0f 05, on x86-64.
  std::uint8_t code[2] = {};
  ASSERT_EQ(LinuxPlatform::ReadMemory(wait.pc - 2, code), sizeof(code));
  if constexpr (kNativeArchitecture == Architecture::kX86_64) {
    EXPECT_EQ(code[0], 0x0F);
    EXPECT_EQ(code[1], 0x05);
  }
  EXPECT_EQ(wait.sp % 8, 0U);
  EXPECT_EQ(LinuxPlatform::ReadMemory(wait.sp, code), sizeof(code));
  const BusyThread busy;
  EXPECT_EQ(LinuxThreadProbe(busy.id()).Observe().kind, Kind::kReady);
}

TEST(LinuxThreadProbe, OfAnEndedThreadNothingIsKnown) {
  std::uint64_t id = 0;
  std::thread([&] { id = LinuxPlatform::CurrentThread().id; }).join();
  LinuxThreadProbe probe(id);
  while (probe.WaitCount() >= 0) std::this_thread::yield();
  EXPECT_EQ(probe.Observe().kind, ThreadActivity::Kind::kUnknown);
}

// Of a program with few files left, probes keep none for long; and they work without.
TEST(LinuxThreadProbe, FewFilesStayOpen) {
  const WaitingThread waiting;
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit small{.rlim_cur = 64, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &small), 0);
  const std::size_t files_before = OpenFiles();
  std::vector<LinuxThreadProbe> probes;
  for (int i = 0; i < 50; ++i) {
    probes.emplace_back(waiting.id());
    EXPECT_GE(probes.back().WaitCount(), 1);
  }
  EXPECT_GT(OpenFiles(), files_before);
  EXPECT_LE(OpenFiles(), files_before + 64 / 8);
  probes.clear();
  EXPECT_EQ(OpenFiles(), files_before);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

TEST(LinuxThreadProbe, AForksChildHasNoneOfThem) {
  const WaitingThread waiting;
  static_cast<void>(LinuxPlatform::ForkCount());  // from here on forks are noticed
  const std::size_t files_before = OpenFiles();
  LinuxThreadProbe probe(waiting.id());
  EXPECT_GE(probe.WaitCount(), 1);
  EXPECT_GT(OpenFiles(), files_before);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) _exit(OpenFiles() <= files_before ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_GE(probe.WaitCount(), 1) << "here they are open";
}

}  // namespace
}  // namespace strobe::internal
