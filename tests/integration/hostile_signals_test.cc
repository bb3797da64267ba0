// A program that uses our signal for its own purposes, before and after us.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using ::testing::HasSubstr;
using testing::KeepingProfiler;
using testing::KeptProfiles;
using ::testing::Not;
using testing::RunRegistered;
using testing::SumByName;
using testing::ThreadCpuNs;
using testing::WaitUntil;
using testing::WorkUntil;

// What the program's own handlers saw. A handler that stands before ours is asked once a process,
// so each test takes a signal of its own.
std::atomic<int> plain_calls{0};
std::atomic<int> info_calls{0};
std::atomic<int> last_value{0};
std::atomic<int> last_code{0};

void PlainHandler(int /*signal*/) { plain_calls.fetch_add(1); }
void InfoHandler(int /*signal*/, siginfo_t* info, void* context) {
  if (context == nullptr) return;
  last_code = info->si_code;
  last_value = info->si_value.sival_int;
  info_calls.fetch_add(1);
}

void InstallPlain(int signal) {
  struct sigaction action {};
  action.sa_handler = &PlainHandler;
  ASSERT_EQ(sigaction(signal, &action, nullptr), 0);
}

void InstallWithInfo(int signal) {
  struct sigaction action {};
  action.sa_sigaction = &InfoHandler;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(signal, &action, nullptr), 0);
}

ProfilerOptions With(int signal) {
  return {.sampling = {.cpu_frequency_hz = 1000, .signal_number = signal}};
}

void SendTo(pthread_t thread, int signal, int value) {
  sigval payload{};
  payload.sival_int = value;
  ASSERT_EQ(pthread_sigqueue(thread, signal, payload), 0);
}

// Works until one more sample has been drained.
void WorkUntilSampled(KeepingProfiler& profiler) {
  const std::uint64_t before = profiler.stats().samples;
  WorkUntil([&] { return profiler.stats().samples > before; }, [] { BurnCpu(1'000'000); });
}

// Runs body() on a registered thread under a session, and holds the account to its clock.
template <class Body>
void RunAccounted(KeepingProfiler& profiler, Body&& body) {
  KeptProfiles::Take();
  ASSERT_TRUE(profiler.Start().ok());
  const CpuBounds bounds = RunRegistered(profiler, "hostile", body);
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  const auto cpu_ns = SumByName(kept, "cpu");
  ASSERT_TRUE(cpu_ns.contains("hostile"));
  EXPECT_GE(cpu_ns.at("hostile"), bounds.low_ns);
  EXPECT_LE(cpu_ns.at("hostile"), bounds.high_ns);
}

TEST(HostileSignals, PlainHandlerBeforeUsGetsItsSignals) {
  // A signal that queues: of SIGUSR1, one that comes while ours is pending would be lost.
  const int signal = SIGRTMIN + 1;
  InstallPlain(signal);
  plain_calls = 0;
  KeepingProfiler profiler(With(signal));
  RunAccounted(profiler, [&profiler, signal] {
    for (int i = 0; i < 100; ++i) {
      BurnCpu(100'000);
      raise(signal);
    }
    kill(getpid(), signal);
    WorkUntil([] { return plain_calls.load() >= 101; }, [] { BurnCpu(10'000); });
    WorkUntilSampled(profiler);
  });
  // Each of theirs, and none of ours.
  EXPECT_EQ(plain_calls, 101);
  EXPECT_GE(profiler.stats().signals_foreign, 101U);
}

TEST(HostileSignals, HandlerWithInfoGetsItWhole) {
  const int signal = SIGRTMIN + 2;
  InstallWithInfo(signal);
  info_calls = 0;
  KeepingProfiler profiler(With(signal));
  RunAccounted(profiler, [&profiler, signal] {
    for (int i = 0; i < 100; ++i) {
      BurnCpu(100'000);
      SendTo(pthread_self(), signal, i);
      EXPECT_EQ(info_calls.load(), i + 1);
      EXPECT_EQ(last_value.load(), i);
      EXPECT_EQ(last_code.load(), SI_QUEUE);
    }
    WorkUntilSampled(profiler);
  });
  EXPECT_EQ(info_calls, 100);
}

// A timer of the program's own, on the same signal: its expiries are its own.
TEST(HostileSignals, TimerOfTheProgramOnOurSignal) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer keeps one pending signal of a number: ours drowns theirs";
  constexpr int kSignal = SIGPROF;
  InstallWithInfo(kSignal);
  info_calls = 0;
  KeepingProfiler profiler(With(kSignal));
  RunAccounted(profiler, [] {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = kSignal;
    event.sigev_value.sival_int = 4711;
    timer_t timer{};
    ASSERT_EQ(timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &timer), 0);
    const itimerspec times{.it_interval = {0, 3'000'000}, .it_value = {0, 3'000'000}};
    ASSERT_EQ(timer_settime(timer, 0, &times, nullptr), 0);
    WorkUntil([] { return info_calls.load() >= 5; }, [] { BurnCpu(1'000'000); });
    timer_delete(timer);
  });
  EXPECT_EQ(last_value, 4711);
  EXPECT_EQ(last_code, SI_TIMER);
}

// Nothing stood there before: a foreign signal whose default action would end the program is
// dropped, and counted.
TEST(HostileSignals, DefaultActionBeforeUsIsNotCarriedOut) {
  const int signal = SIGRTMIN + 3;
  KeepingProfiler profiler(With(signal));
  const std::uint64_t before = profiler.stats().signals_foreign;
  RunAccounted(profiler, [signal] {
    for (int i = 0; i < 10; ++i) raise(signal);
    BurnCpu(10'000'000);
  });
  EXPECT_EQ(profiler.stats().signals_foreign - before, 10U);
  raise(signal);  // after the session as well
}

TEST(HostileSignals, IgnoredBeforeUsStaysIgnored) {
  const int signal = SIGRTMIN + 4;
  ASSERT_NE(::signal(signal, SIG_IGN), SIG_ERR);
  KeepingProfiler profiler(With(signal));
  RunAccounted(profiler, [signal] {
    raise(signal);
    BurnCpu(10'000'000);
  });
}

// A payload that looks like one of ours but names nothing must not be believed.
TEST(HostileSignals, ForgedPayloadsDoNoHarm) {
  const int signal = SIGRTMIN + 5;
  KeepingProfiler profiler(With(signal));
  const std::uint64_t ours = internal::ChannelToken::CopyMark()
                             << internal::ChannelToken::kCopyShift;
  RunAccounted(profiler, [signal, ours] {
    for (std::uint64_t i = 0; i < 4096; ++i) {
      sigval payload{};
      payload.sival_ptr = reinterpret_cast<void*>(
          ours | (i * 0x9E3779B97F4A7C15U >> (64 - internal::ChannelToken::kCopyShift)));
      pthread_sigqueue(pthread_self(), signal, payload);
    }
    BurnCpu(10'000'000);
  });
}

TEST(HostileSignals, StormOfForeignSignals) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer keeps one pending signal of a number";
  const int signal = SIGRTMIN + 6;
  InstallWithInfo(signal);
  info_calls = 0;
  constexpr int kSignals = testing::kIsSanitized ? 2'000 : 50'000;
  KeepingProfiler profiler(With(signal));
  std::atomic<int> sent{0};
  RunAccounted(profiler, [&] {
    const pthread_t target = pthread_self();
    std::thread sender([&] {
      for (int i = 0; i < kSignals; ++i) {
        const sigval payload{};
        sent += pthread_sigqueue(target, signal, payload) == 0 ? 1 : 0;  // the queue may be full
      }
    });
    BurnCpu(30'000'000);
    WorkUntilSampled(profiler);
    sender.join();
  });
  // Queued ones are delivered before the thread goes on; none got lost.
  EXPECT_EQ(info_calls, sent);
  EXPECT_GT(sent, 0);
}

TEST(HostileSignals, HandlerReplacedAfterUsIsNoticed) {
  const int signal = SIGRTMIN + 7;
  KeepingProfiler profiler(With(signal));
  ASSERT_TRUE(profiler.Start().ok());
  const auto registration = profiler.RegisterThread("main");
  BurnCpu(10'000'000);
  EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr("replaced")));
  struct sigaction ours {};
  ASSERT_EQ(sigaction(signal, nullptr, &ours), 0);
  ::testing::internal::CaptureStderr();
  InstallPlain(signal);
  // The collector looks once a second, and sees that nothing comes any more.
  WorkUntil([&] { return profiler.stats().handler_replaced > 0; }, [] { BurnCpu(1'000'000); });
  EXPECT_EQ(profiler.stats().handler_replaced, 1U);
  EXPECT_THAT(profiler.Diagnose(),
              HasSubstr("replaced the handler of signal " + std::to_string(signal)));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("replaced the handler of signal " + std::to_string(signal)));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1);
  ASSERT_EQ(sigaction(signal, &ours, nullptr), 0);
  EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr("replaced")));
  EXPECT_TRUE(profiler.Stop().ok());
}

// The library has chosen the signal: where the program takes it away, another takes its place.
TEST(HostileSignals, AnotherSignalTakesThePlaceOfOneThatIsTaken) {
  KeepingProfiler profiler(With(0));
  KeptProfiles::Take();
  ASSERT_TRUE(profiler.Start().ok());
  const int first = profiler.stats().signal_number;
  struct sigaction ours {};
  ASSERT_EQ(sigaction(first, nullptr, &ours), 0);
  plain_calls = 0;
  ::testing::internal::CaptureStderr();
  const CpuBounds bounds = RunRegistered(profiler, "hostile", [&] {
    WorkUntilSampled(profiler);
    InstallPlain(first);
    WorkUntil([&] { return profiler.stats().signal_number != first; }, [] { BurnCpu(1'000'000); });
    WorkUntilSampled(profiler);
  });
  const std::string said = ::testing::internal::GetCapturedStderr();
  const int second = profiler.stats().signal_number;
  EXPECT_NE(second, first);
  EXPECT_THAT(said, HasSubstr("interrupted by signal " + std::to_string(second)));
  EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr("replaced")));
  ASSERT_EQ(sigaction(first, &ours, nullptr), 0);
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  EXPECT_GE(SumByName(kept, "cpu")["hostile"], bounds.low_ns);
  EXPECT_LE(SumByName(kept, "cpu")["hostile"], bounds.high_ns);
}

sigset_t AllSignals() {
  sigset_t all;
  sigfillset(&all);
  return all;
}

// The standard way to take signals: every worker blocks all, and one thread waits for them. Nothing
// of ours may come out of that.
TEST(HostileSignals, ThreadThatBlocksAllSignalsGetsNoneOfOurs) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 200}});
  KeptProfiles::Take();
  ASSERT_TRUE(profiler.Start().ok());
  const sigset_t all = AllSignals();
  CpuBounds bounds;
  std::atomic<bool> is_waiting{false};
  int got = 0;
  std::string diagnosis;
  Stats stats;
  std::thread waiter([&] {
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    bounds = RunRegistered(profiler, "blocks", [&] {
      BurnCpu(50'000'000);
      stats = profiler.stats();
      diagnosis = profiler.Diagnose();
      is_waiting = true;
      sigwait(&all, &got);
    });
  });
  WaitUntil([&] { return is_waiting.load(); });
  const std::uint64_t drains = profiler.stats().drains;
  // Many periods of the wall clock.
  WaitUntil([&] { return profiler.stats().drains >= drains + 5; });
  ASSERT_EQ(pthread_kill(waiter.native_handle(), SIGUSR1), 0);
  waiter.join();
  EXPECT_EQ(got, SIGUSR1);
  EXPECT_EQ(stats.threads_blocking, 1U);
  EXPECT_THAT(diagnosis, HasSubstr("block signal " + std::to_string(stats.signal_number)));
  EXPECT_THAT(diagnosis, Not(HasSubstr("there is no sample yet")));
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().samples, 0U);
  const auto kept = KeptProfiles::Take();
  EXPECT_GE(SumByName(kept, "cpu")["blocks"], bounds.low_ns);
  EXPECT_LE(SumByName(kept, "cpu")["blocks"], bounds.high_ns);
  EXPECT_EQ(SumByName(kept, "samples")["blocks"], 0);
}

TEST(HostileSignals, ThreadThatBlocksOurSignalLetsItThroughWhereTheOptionSaysSo) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .unblock_signal = true}});
  const sigset_t all = AllSignals();
  sigset_t during;
  sigset_t after;
  for (const bool is_started_before : {true, false}) {
    if (is_started_before) {
      ASSERT_TRUE(profiler.Start().ok());
    }
    std::thread([&] {
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      RunRegistered(profiler, "unblocks", [&] {
        if (!is_started_before) {
          ASSERT_TRUE(profiler.Start().ok());
        }
        pthread_sigmask(SIG_SETMASK, nullptr, &during);
        WorkUntilSampled(profiler);
      });
      pthread_sigmask(SIG_SETMASK, nullptr, &after);
    }).join();
    const int signal = profiler.stats().signal_number;
    EXPECT_EQ(sigismember(&during, signal), 0);
    EXPECT_EQ(sigismember(&during, SIGUSR1), 1);
    EXPECT_EQ(sigismember(&after, signal), 1);
    ASSERT_TRUE(profiler.Stop().ok());
  }
}

// A thread that blocks all signals only later, and takes them between its work. What was under way
// when it began to block them, and what a timer has left, is taken first.
TEST(HostileSignals, ThreadThatBlocksAllSignalsLaterGetsNoneOfOurs) {
  if (testing::kIsThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer hands out what is blocked, too";
  for (const auto trigger :
       {SampleTrigger::kAuto, SampleTrigger::kRandom, SampleTrigger::kTimers}) {
    KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000,
                                           .wall_frequency_hz = 200,
                                           .trigger = trigger,
                                           .max_overhead = 1}});
    KeptProfiles::Take();
    ASSERT_TRUE(profiler.Start().ok());
    const sigset_t all = AllSignals();
    CpuBounds bounds;
    int taken = 0;
    std::thread([&] {
      bounds = RunRegistered(profiler, "later", [&] {
        WorkUntilSampled(profiler);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
        const timespec none{};
        const auto work_until = [&](const auto& is_done) {
          int signals = 0;
          WorkUntil(is_done, [&] {
            BurnCpu(1'000'000);
            while (sigtimedwait(&all, nullptr, &none) > 0) ++signals;
          });
          return signals;
        };
        const auto drains = [&] { return profiler.stats().drains; };
        // At each drain the collector looks for timers of threads that block the signal.
        const std::uint64_t before = drains();
        work_until([&] { return drains() >= before + 20; });
        // Once a second, it looks whether a mask has changed: until then each request asks.
        taken = work_until([&] { return profiler.stats().threads_blocking == 1; });
        const std::uint64_t found = drains();
        taken += work_until([&] { return drains() >= found + 10; });
        pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
      });
    }).join();
    EXPECT_EQ(taken, 0);
    ASSERT_TRUE(profiler.Stop().ok());
    const auto kept = KeptProfiles::Take();
    EXPECT_GE(SumByName(kept, "cpu")["later"], bounds.low_ns);
    EXPECT_LE(SumByName(kept, "cpu")["later"], bounds.high_ns);
  }
}

// What a thread blocks may change; the collector looks again.
TEST(HostileSignals, ThreadThatChangesItsMindAboutOurSignal) {
  if (testing::kIsThreadSanitizer) GTEST_SKIP() << "ThreadSanitizer hands out what is blocked, too";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  KeptProfiles::Take();
  ASSERT_TRUE(profiler.Start().ok());
  const sigset_t all = AllSignals();
  CpuBounds bounds;
  std::thread([&] {
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    bounds = RunRegistered(profiler, "changes", [&] {
      EXPECT_EQ(profiler.stats().threads_blocking, 1U);
      pthread_sigmask(SIG_UNBLOCK, &all, nullptr);
      WorkUntilSampled(profiler);
      WorkUntil([&] { return profiler.stats().threads_blocking == 0; }, [] { BurnCpu(1'000'000); });
      pthread_sigmask(SIG_BLOCK, &all, nullptr);
      WorkUntil([&] { return profiler.stats().threads_blocking == 1; }, [] { BurnCpu(1'000'000); });
    });
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  EXPECT_GE(SumByName(kept, "cpu")["changes"], bounds.low_ns);
  EXPECT_LE(SumByName(kept, "cpu")["changes"], bounds.high_ns);
}

TEST(HostileSignals, ErrnoIsUntouched) {
  KeepingProfiler profiler(With(0));
  RunAccounted(profiler, [&profiler] {
    const std::int64_t end_ns = ThreadCpuNs() + 100'000'000;
    int expected = 1;
    const auto work = [&] {
      expected = expected % 120 + 1;
      errno = expected;
      for (int i = 0; i < 20'000; ++i) asm volatile("" : : : "memory");
      EXPECT_EQ(errno, expected);
    };
    while (ThreadCpuNs() < end_ns) work();
    WorkUntil([&] { return profiler.stats().samples > 0; }, work);
  });
}

// SA_RESTART. Requests interrupt a thread that waits, where CPU timers never would.
TEST(HostileSignals, BlockedReadIsRestarted) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer hands out no signal before the read returns";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 200}});
  ASSERT_TRUE(profiler.Start().ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> is_registered{false};
  ssize_t got = -1;
  int error = 0;
  std::thread reader([&] {
    RunRegistered(profiler, "reader", [&] {
      is_registered = true;
      char byte = 0;
      got = read(ends[0], &byte, 1);
      error = errno;
    });
  });
  WaitUntil([&] { return is_registered.load(); });
  // The one sample of the waiting thread has come.
  WaitUntil([&] { return profiler.stats().samples > 0; });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  reader.join();
  EXPECT_EQ(got, 1) << "errno " << error;
  ASSERT_TRUE(profiler.Stop().ok());
  close(ends[0]);
  close(ends[1]);
}

TEST(HostileSignals, SignalThatCannotBeHandledIsRefused) {
  for (const int signal : {SIGKILL, SIGSTOP}) {
    KeepingProfiler profiler(With(signal));
    const absl::Status status = profiler.Start();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("signal_number"));
  }
}

}  // namespace
}  // namespace strobe
