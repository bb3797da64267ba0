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
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::RunRegistered;
using testing::UndisturbedWalks;
using testing::WaitUntil;
using testing::WorkUntil;

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

// Waits one after the other, each of which another thread interrupts once: an interruption of every
// attempt could keep a wait from its end. No channel takes the signal, so it counts as stale.
class InterruptedWaits {
 public:
  explicit InterruptedWaits(int signal) : signal_(signal), pest_([this] { Interrupt(); }) {}
  ~InterruptedWaits() {
    is_ending_ = true;
    pest_.join();
  }
  InterruptedWaits(const InterruptedWaits&) = delete;
  InterruptedWaits& operator=(const InterruptedWaits&) = delete;

  // Whether interruptions say of the thread that it ran just now.
  void SetWasRunning(bool was_running) { was_running_ = was_running; }

  // Returns what the wait returns. Sets `is_hit` if the interruption came between begin and end.
  int Run(const std::function<int()>& wait, bool& is_hit) {
    const auto& arrived = internal::GlobalHandlerCounters().stale;
    begun_.fetch_add(1);
    const std::uint64_t before = arrived.load();
    const int error = wait();
    is_hit = arrived.load() != before;
    return error;
  }

 private:
  void Interrupt() {
    const std::uint64_t payload = internal::ChannelToken{.arena = 7}.Pack();
    int interrupted = 0;
    while (!is_ending_.load()) {
      const timespec pause{.tv_sec = 0, .tv_nsec = 500'000};
      nanosleep(&pause, nullptr);
      if (const int begun = begun_.load(); begun != interrupted) {
        nanosleep(&pause, nullptr);
        NativePlatform::Interrupt(id_, payload, signal_, was_running_.load());
        interrupted = begun;
      }
    }
  }

  const int signal_;
  const std::uint64_t id_ = NativePlatform::CurrentThread().id;
  std::atomic<int> begun_{0};
  std::atomic<bool> is_ending_{false};
  std::atomic<bool> was_running_{true};
  std::thread pest_;
};

// The platform's own. When a loaded machine runs the other thread is chance, so each kind of wait
// is tried until it has been hit.
TEST(Waits, AnInterruptionOfAThreadThatRanJustNowEndsNoWait) {
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer runs handlers only after the call has returned";
  constexpr int kHits = 10;
  const int signal = NativePlatform::DefaultSignal();
  ASSERT_TRUE(NativePlatform::InstallHandler(signal).ok());
  InterruptedWaits waits(signal);
  for (const auto& [name, wait] : Waits()) {
    int hits = 0;
    const bool is_seen = WaitUntil([&, &wait = wait, &name = name] {
      bool is_hit = false;
      EXPECT_EQ(waits.Run(wait, is_hit), 0) << name;
      hits += is_hit ? 1 : 0;
      return hits == kHits;
    });
    EXPECT_TRUE(is_seen) << name;
  }
  // So it is without that care.
  waits.SetWasRunning(false);
  for (const auto& [name, wait] : Waits()) {
    const bool is_seen = WaitUntil([&, &wait = wait] {
      bool is_hit = false;
      return waits.Run(wait, is_hit) == EINTR;
    });
    EXPECT_TRUE(is_seen) << name << " is never interrupted";
  }
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
  constexpr int kMinWaits = 800;
  int waits = 0;
  RunRegistered(profiler, "alternates", [&] {
    WorkUntil([&] { return waits >= kMinWaits && profiler.stats().samples > 50; },
              [&] {
                for (const auto& [name, wait] : Waits()) {
                  testing::BurnCpu(500'000);
                  EXPECT_EQ(wait(), 0) << name;
                  ++waits;
                }
              });
  });
  ASSERT_TRUE(profiler.Stop().ok());
}

// A wait is interrupted only to learn a frame pointer, and that ends: the signal of a loaded
// machine may come too late to learn it, but not each time.
TEST(Waits, TheWallProviderInterruptsUntilItKnowsThePlaces) {
  if (testing::kIsThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer runs handlers only after the call has returned";
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  constexpr std::uint64_t kWalks = 200;
  constexpr int kMostTurns = 3000;  // of at least 20 ms
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  std::uint64_t interrupted = 0;
  RunRegistered(profiler, "waits", [&] {
    UndisturbedWalks walks(profiler);
    WaitUntil<kMostTurns>([&] {
      for (const auto& [name, wait] : Waits()) {
        const int error = wait();
        EXPECT_TRUE(error == 0 || error == EINTR) << name << ": " << error;
        interrupted += error == EINTR ? 1 : 0;
      }
      return walks.Count() >= kWalks;
    });
  });
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_LE(interrupted, stats.waits_interrupted) << "without a count";
  EXPECT_EQ(stats.waits_hidden, 0U);
  RecordProperty("waits_walked", static_cast<int>(stats.waits_walked));
  RecordProperty("waits_interrupted", static_cast<int>(stats.waits_interrupted));
}

}  // namespace
}  // namespace strobe
