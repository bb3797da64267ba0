#include "strobe/platform/linux/linux_thread_probe.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../../../src/platform/linux/memory/process_memory.h"
#include "gtest/gtest.h"
#include "strobe/arch/registers.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/testing/latch.h"
#include "support/in_child.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

using testing::Latch;
using testing::WaitUntil;
using testing::WorkUntil;

// A thread that computes until the object ends.
class BusyThread {
 public:
  // On that CPU, or on any.
  explicit BusyThread(int cpu = -1)
      : thread_([this, cpu] {
          if (cpu >= 0) PinTo(cpu);
          id_ = LinuxPlatform::CurrentThread().id;
          while (!is_ending_.load(std::memory_order_relaxed)) is_busy_ = true;
        }) {
    EXPECT_TRUE(WaitUntil([this] { return is_busy_.load(); }));
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
  std::atomic<bool> is_busy_{false};
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
          is_next_to_wait_ = true;
          end_.wait();
        }) {
    EXPECT_TRUE(WaitUntil([this] {
      return is_next_to_wait_ &&
             LinuxThreadProbe(id_).Observe().kind == ThreadActivity::Kind::kWaits &&
             LinuxThreadProbe(id_).WaitCount() >= 1;
    }));
  }
  ~WaitingThread() {
    end_.count_down();
    thread_.join();
  }
  [[nodiscard]] std::uint64_t id() const { return id_; }

 private:
  std::atomic<bool> is_next_to_wait_{false};
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
  const ThreadPoll look = probe.Poll();
  return look == ThreadPoll::kRuns || (look == ThreadPoll::kHasRun && probe.WasDisplaced(instant));
}
bool IsOnCpuAtNextInstant(LinuxThreadProbe& probe) {
  Sleep(1'000'000);
  return WasOnCpu(probe, LinuxInstant());
}

// On a machine that has other work it may take long until the thread is on a CPU so often.
bool AwaitOnCpu(std::uint64_t thread_id) {
  constexpr int kWanted = 20;
  LinuxThreadProbe probe(thread_id);
  int count = 0;
  return WaitUntil([&] { return (count += IsOnCpuAtNextInstant(probe) ? 1 : 0) == kWanted; });
}

TEST(LinuxThreadProbe, AThreadThatComputesIsOnACpu) {
  const BusyThread busy;
  EXPECT_TRUE(AwaitOnCpu(busy.id()));
}

TEST(LinuxThreadProbe, AThreadThatWaitsIsNotOnACpu) {
  const WaitingThread waiting;
  LinuxThreadProbe probe(waiting.id());
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(IsOnCpuAtNextInstant(probe)) << i;
}

// The calling thread takes the CPU from the other one each time it wakes: the other one does not
// run then, but it did.
TEST(LinuxThreadProbe, AThreadWhoseCpuTheCallerHasTakenWasOnIt) {
  const int cpu = sched_getcpu();
  std::thread([cpu] {
    BusyThread::PinTo(cpu);
    static_cast<void>(LinuxPlatform::WakeInTime());
    const BusyThread busy(cpu);
    EXPECT_TRUE(AwaitOnCpu(busy.id()));
  }).join();
}

TEST(LinuxThreadProbe, TellsTheCpuOfAThread) {
  const int cpu = sched_getcpu();
  const BusyThread busy(cpu);
  LinuxThreadProbe probe(busy.id());
  EXPECT_EQ(probe.LastCpu(), cpu);
}

TEST(LinuxThreadProbe, TellsWhetherAThreadYields) {
  const WaitingThread waiting;
  LinuxThreadProbe probe(waiting.id());
  EXPECT_TRUE(probe.YieldsAtOnce());
  const auto id = static_cast<pid_t>(waiting.id());
  const sched_param none{};
  ASSERT_EQ(sched_setscheduler(id, SCHED_BATCH | SCHED_RESET_ON_FORK, &none), 0);
  EXPECT_TRUE(probe.YieldsAtOnce());
  const sched_param urgent{.sched_priority = 1};
  if (sched_setscheduler(id, SCHED_RR, &urgent) != 0)
    GTEST_SKIP() << "the system gives no real-time policy";
  EXPECT_FALSE(probe.YieldsAtOnce());
}

// Of the calling thread: how often it has waited, and how often it has lost its CPU.
struct Switches {
  std::int64_t waits = 0;
  std::int64_t losses = 0;

  static Switches Now() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return {.waits = usage.ru_nvcsw, .losses = usage.ru_nivcsw};
  }
  bool operator==(const Switches&) const = default;
};

// When a thread that does not run ran last, by the scheduler's clock; nothing if it does not tell.
std::optional<double> LastRunMs(std::uint64_t thread_id) {
  std::ifstream sched("/proc/self/task/" + std::to_string(thread_id) + "/sched");
  for (std::string line; std::getline(sched, line);) {
    const std::size_t colon = line.find(':');
    if (line.starts_with("se.exec_start") && colon != std::string::npos)
      return std::strtod(line.c_str() + colon + 1, nullptr);
  }
  return std::nullopt;
}

// One of two threads had the CPU, and the other one waited for it. Judged are instants at which the
// caller kept the CPU for as long as it looked, and which do not come with a switch from the one to
// the other: a probe cannot tell which of the two it was then.
TEST(LinuxThreadProbe, AThreadThatWaitsForACpuIsNotOnIt) {
  constexpr int kWanted = 20;
  constexpr double kApartMs = 0.01;  // five times what a probe allows for a switch
  const int cpu = sched_getcpu();
  bool has_file = true;
  std::thread([&] {
    BusyThread::PinTo(cpu);
    static_cast<void>(LinuxPlatform::WakeInTime());
    const BusyThread one(cpu);
    const BusyThread other(cpu);
    has_file = LastRunMs(one.id()).has_value();
    LinuxThreadProbe probes[] = {LinuxThreadProbe(one.id()), LinuxThreadProbe(other.id())};
    int both = 0;
    int either = 0;
    const auto look = [&] {
      Sleep(1'000'000);
      const Switches before = Switches::Now();
      const LinuxInstant instant;
      const int count =
          (WasOnCpu(probes[0], instant) ? 1 : 0) + (WasOnCpu(probes[1], instant) ? 1 : 0);
      const double apart_ms = LastRunMs(one.id()).value_or(0) - LastRunMs(other.id()).value_or(0);
      if (Switches::Now() != before || std::abs(apart_ms) < kApartMs) return;
      both += count == 2 ? 1 : 0;
      either += count == 1 ? 1 : 0;
    };
    EXPECT_TRUE(!has_file || WaitUntil([&] {
      look();
      return either >= kWanted;
    }));
    EXPECT_EQ(both, 0);
  }).join();
  if (!has_file) GTEST_SKIP() << "the kernel does not say when a thread ran last";
}

// A thread that joins another may go on a moment before the kernel has forgotten that.
std::uint64_t IdOfAnEndedThread() {
  std::uint64_t id = 0;
  std::thread([&] { id = LinuxPlatform::CurrentThread().id; }).join();
  EXPECT_TRUE(WaitUntil([id] { return LinuxThreadProbe(id).WaitCount() < 0; }));
  return id;
}

TEST(LinuxThreadProbe, AThreadThatIsGoneIsNotOnACpu) {
  LinuxThreadProbe probe(IdOfAnEndedThread());
  EXPECT_NE(probe.Poll(), ThreadPoll::kRuns);
  EXPECT_FALSE(probe.WasDisplaced(LinuxInstant()));
  EXPECT_EQ(probe.WaitCount(), -1);
}

// By the kernel's own counts, read around the probe's and between them.
TEST(LinuxThreadProbe, WaitsAreCountedAndLossesOfTheCpuAreNot) {
  constexpr int kWanted = 50;
  const int cpu = sched_getcpu();
  std::thread([cpu] {
    BusyThread::PinTo(cpu);
    const BusyThread busy(cpu);
    LinuxThreadProbe probe(LinuxPlatform::CurrentThread().id);
    const Switches outer = Switches::Now();
    const std::int64_t before = probe.WaitCount();
    const Switches inner = Switches::Now();
    ASSERT_GE(before, 0);
    ASSERT_TRUE(WaitUntil([&] { return Switches::Now().waits - inner.waits >= kWanted; }));
    ASSERT_TRUE(WorkUntil([&] { return Switches::Now().losses - inner.losses >= kWanted; },
                          [] { sched_yield(); }));
    const Switches inner_end = Switches::Now();
    const std::int64_t waits = probe.WaitCount() - before;
    EXPECT_GE(waits, inner_end.waits - inner.waits);
    EXPECT_LE(waits, Switches::Now().waits - outer.waits);
  }).join();
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
  const ThreadActivity wait = of_waiting.Observe();
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
  LinuxThreadProbe probe(IdOfAnEndedThread());
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

// The child inherits the parent's files. It closes none of their numbers at the fork, because they
// may be the program's by then, and reads none of them.
TEST(LinuxThreadProbe, AForksChildUsesNoneOfThem) {
  const WaitingThread waiting;
  static_cast<void>(LinuxPlatform::ForkCount());  // from here on forks are noticed
  LinuxThreadProbe probe(waiting.id());
  EXPECT_GE(probe.WaitCount(), 1);
  const std::size_t files = OpenFiles();
  EXPECT_TRUE(testing::HoldsInChild([&] {
    return OpenFiles() == files && probe.WaitCount() == -1 && OpenFiles() == files;
  })) << "the thread is none of the child's";
  EXPECT_GE(probe.WaitCount(), 1) << "here they are open";
}

// A signal of the lower 31, and one that a stat file does not tell of.
TEST(LinuxThreadProbe, TellsWhichSignalsAThreadBlocks) {
  std::atomic<std::uint64_t> id{0};
  Latch block{1};
  std::atomic<bool> is_blocked{false};
  Latch wait{1};
  std::thread thread([&] {
    id = LinuxPlatform::CurrentThread().id;
    block.wait();
    sigset_t some;
    sigemptyset(&some);
    for (const int signal : {SIGURG, SIGRTMIN + 3}) sigaddset(&some, signal);
    pthread_sigmask(SIG_BLOCK, &some, nullptr);
    is_blocked = true;
    wait.wait();
    int got = 0;
    sigaddset(&some, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &some, nullptr);
    sigwait(&some, &got);
    EXPECT_EQ(got, SIGUSR1);
  });
  ASSERT_TRUE(WaitUntil([&] { return id != 0; }));
  LinuxThreadProbe probe(id);
  for (const int signal : {SIGURG, SIGUSR1, SIGRTMIN + 3}) EXPECT_FALSE(probe.BlocksSignal(signal));
  block.count_down();
  ASSERT_TRUE(WaitUntil([&] { return is_blocked.load(); }));
  for (const int signal : {SIGURG, SIGRTMIN + 3}) EXPECT_TRUE(probe.BlocksSignal(signal));
  for (const int signal : {SIGUSR1, SIGRTMIN + 4}) EXPECT_FALSE(probe.BlocksSignal(signal));
  wait.count_down();
  // While it waits for them, the kernel shows them as not blocked.
  EXPECT_TRUE(WaitUntil([&] {
    return (BlockedSignalsIn("/proc/self/task/" + std::to_string(id)) >> (SIGUSR2 - 1) & 1) != 0;
  })) << "all, while it waits";
  for (const int signal : {SIGURG, SIGRTMIN + 3}) EXPECT_TRUE(probe.BlocksSignal(signal));
  pthread_kill(thread.native_handle(), SIGUSR1);
  thread.join();
  // The kernel forgets it a moment after it lets pthread_join return.
  EXPECT_TRUE(WaitUntil([&] { return !probe.BlocksSignal(SIGURG); })) << "it has ended";
}

}  // namespace
}  // namespace strobe::internal
