// Sampling interrupts threads that run. One that begins to wait just then must not notice: no wait
// ends with EINTR. Wall sampling leaves waiting threads alone.
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "platform/test_system.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/native.h"

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::RunRegistered;

constexpr int kWaitMs = 2;
constexpr timespec kWait{.tv_sec = 0, .tv_nsec = kWaitMs * 1'000'000};

// Waits that SA_RESTART does not restart. Each returns errno, or 0.
std::map<std::string, std::function<int()>> Waits() {
  static const int epoll = epoll_create1(EPOLL_CLOEXEC);
  static const auto sockets = [] {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    const timeval wait{.tv_sec = 0, .tv_usec = kWaitMs * 1000};
    EXPECT_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    return pair;
  }();
  const auto error = [](auto result) { return result < 0 ? errno : 0; };
  return {
      {"poll", [=] { return error(poll(nullptr, 0, kWaitMs)); }},
      {"ppoll", [=] { return error(ppoll(nullptr, 0, &kWait, nullptr)); }},
      {"select",
       [=] {
         timeval wait{.tv_sec = 0, .tv_usec = kWaitMs * 1000};
         return error(select(0, nullptr, nullptr, nullptr, &wait));
       }},
      {"pselect", [=] { return error(pselect(0, nullptr, nullptr, nullptr, &kWait, nullptr)); }},
      {"epoll_wait",
       [=] {
         epoll_event event{};
         return error(epoll_wait(epoll, &event, 1, kWaitMs));
       }},
      {"nanosleep", [=] { return error(nanosleep(&kWait, nullptr)); }},
      {"clock_nanosleep", [] { return clock_nanosleep(CLOCK_MONOTONIC, 0, &kWait, nullptr); }},
      {"recv with a time-out",
       [=] {
         char byte = 0;
         const int result = error(recv(sockets[0], &byte, 1, 0));
         return result == EAGAIN ? 0 : result;
       }},
      {"read of a socket with a time-out",
       [=] {
         char byte = 0;
         const int result = error(read(sockets[0], &byte, 1));
         return result == EAGAIN ? 0 : result;
       }},
      {"sigtimedwait",
       [=] {
         sigset_t signals;
         sigemptyset(&signals);
         sigaddset(&signals, SIGRTMIN + 5);
         const int result = error(sigtimedwait(&signals, nullptr, &kWait));
         return result == EAGAIN ? 0 : result;
       }},
  };
}

// The platform's own: no channel takes the signal.
TEST(Waits, AnInterruptionOfAThreadThatRanJustNowEndsNoWait) {
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer runs handlers only after the call has returned";
  const int signal = NativePlatform::DefaultSignal();
  ASSERT_TRUE(NativePlatform::InstallHandler(signal).ok());
  const std::uint64_t id = NativePlatform::CurrentThread().id;
  const std::uint64_t payload = internal::SlotToken{.arena = 7}.Pack();
  std::atomic<int> waits_begun{0};
  std::atomic<bool> is_ending{false};
  std::atomic<bool> was_running{true};
  // Interrupts each wait once: an interruption of every attempt could keep a wait from its end.
  std::thread pest([&] {
    int interrupted = 0;
    while (!is_ending.load()) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
      nanosleep(&pause, nullptr);
      if (const int begun = waits_begun.load(); begun != interrupted) {
        nanosleep(&pause, nullptr);
        NativePlatform::Interrupt(id, payload, signal, was_running.load());
        interrupted = begun;
      }
    }
  });
  const auto outcome = [&](const std::function<int()>& wait) {
    waits_begun.fetch_add(1);
    return wait();
  };
  for (const auto& [name, wait] : Waits()) {
    for (int i = 0; i < 20; ++i) EXPECT_EQ(outcome(wait), 0) << name;
  }
  // So it is without that care.
  was_running = false;
  for (const auto& [name, wait] : Waits()) {
    int interrupted = 0;
    for (int i = 0; i < 20; ++i) interrupted += outcome(wait) == EINTR ? 1 : 0;
    EXPECT_GT(interrupted, 0) << name;
  }
  is_ending = true;
  pest.join();
}

class WaitsOfAThreadThatAlternates : public ::testing::TestWithParam<SampleTrigger> {};
INSTANTIATE_TEST_SUITE_P(Triggers, WaitsOfAThreadThatAlternates,
                         ::testing::Values(SampleTrigger::kRandom, SampleTrigger::kPerf));

TEST_P(WaitsOfAThreadThatAlternates, NoneEndsEarly) {
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer runs handlers only after the call has returned";
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 2000, .trigger = GetParam(), .max_overhead = 1}});
  ASSERT_TRUE(profiler.Start().ok());
  int waits = 0;
  RunRegistered(profiler, "alternates", [&] {
    const std::int64_t end_ns = testing::ThreadCpuNs() + 400'000'000;
    while (testing::ThreadCpuNs() < end_ns) {
      for (const auto& [name, wait] : Waits()) {
        testing::BurnCpu(500'000);
        EXPECT_EQ(wait(), 0) << name;
        ++waits;
      }
    }
  });
  EXPECT_GT(waits, 100);
  EXPECT_GT(profiler.stats().samples, 50U);
  ASSERT_TRUE(profiler.Stop().ok());
}

TEST(Waits, UnderTheWallProviderAPlaceIsInterruptedAtMostOnce) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer runs handlers only after the call has returned";
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  std::map<std::string, int> interrupted;
  constexpr int kTurns = 200;
  RunRegistered(profiler, "waits", [&] {
    for (int i = 0; i < kTurns; ++i) {
      for (const auto& [name, wait] : Waits()) {
        const int error = wait();
        EXPECT_TRUE(error == 0 || error == EINTR) << name << ": " << error;
        interrupted[name] += error == EINTR ? 1 : 0;
      }
    }
  });
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GT(stats.waits_walked, 200U);
  EXPECT_EQ(stats.waits_hidden, 0U);
  for (const auto& [name, times] : interrupted) EXPECT_LE(times, 1) << name;
  RecordProperty("waits_walked", static_cast<int>(stats.waits_walked));
  RecordProperty("waits_interrupted", static_cast<int>(stats.waits_interrupted));
}

}  // namespace
}  // namespace strobe
