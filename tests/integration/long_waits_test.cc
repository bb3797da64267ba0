// Waits of 50 ms under wall sampling at 100 Hz: none ends early, but for those whose interruption
// the profiler counts. STROBE_TEST_WAITS_S sets how many seconds that goes on at least; 60 is the
// long form. A wait has no upper limit here, because a loaded machine lengthens all: that a thread
// whose place is known is not touched, and so waits no longer, is polled_stacks_test's to prove.
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "platform/test_system.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::UndisturbedWalks;
using testing::WaitUntil;

constexpr int kWaitMs = 50;
constexpr std::int64_t kWaitNs = kWaitMs * 1'000'000;
constexpr std::uint64_t kWalks = 200;  // in a row, without an interruption

std::int64_t NowNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
int ErrorOf(std::int64_t result) { return result < 0 ? errno : 0; }

// What one thread waits in. Each wait is one system call, and returns errno or 0. One that returns
// 0 has lasted its time by the clock that counts it. The kernel counts the time-out of recv by
// ticks, which no clock shows: there, 0 is the kernel's word that it has passed.
class LongWait {
 public:
  explicit LongWait(const std::string& kind) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_.data()), 0);
    const timeval wait{.tv_sec = 0, .tv_usec = kWaitMs * 1000};
    EXPECT_EQ(setsockopt(sockets_[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    sem_init(&semaphore_, 0, 0);
    if (kind == "poll") wait_ = Lasting([] { return ErrorOf(::poll(nullptr, 0, kWaitMs)); });
    if (kind == "epoll_wait") wait_ = Lasting([this] { return Epoll(); });
    if (kind == "usleep") wait_ = Lasting([] { return ErrorOf(usleep(kWaitMs * 1000)); });
    if (kind == "recv") wait_ = [this] { return Receive(); };
    if (kind == "sem_timedwait") wait_ = [this] { return AwaitSemaphore(); };
    if (kind == "condition variable") wait_ = Lasting([this] { return AwaitCondition(); });
  }
  ~LongWait() {
    sem_destroy(&semaphore_);
    for (const int file : {epoll_, sockets_[0], sockets_[1]}) close(file);
  }
  LongWait(const LongWait&) = delete;
  LongWait& operator=(const LongWait&) = delete;

  static std::vector<std::string> Kinds() {
    return {"poll", "epoll_wait", "usleep", "recv", "sem_timedwait", "condition variable"};
  }
  int operator()() { return wait_(); }

 private:
  // The wait, whose time is counted by CLOCK_MONOTONIC.
  static std::function<int()> Lasting(const std::function<int()>& wait) {
    return [wait] {
      const std::int64_t begin_ns = NowNs(CLOCK_MONOTONIC);
      const int error = wait();
      if (error == 0) {
        EXPECT_GE(NowNs(CLOCK_MONOTONIC), begin_ns + kWaitNs);
      }
      return error;
    };
  }
  int Epoll() {
    epoll_event event{};
    return ErrorOf(epoll_wait(epoll_, &event, 1, kWaitMs));
  }
  int Receive() {
    char byte = 0;
    const int error = ErrorOf(recv(sockets_[0], &byte, 1, 0));
    EXPECT_NE(error, 0) << "there is nothing to receive";
    return error == EAGAIN ? 0 : error;
  }
  int AwaitSemaphore() {
    const std::int64_t until_ns = NowNs(CLOCK_REALTIME) + kWaitNs;
    const timespec until{.tv_sec = until_ns / 1'000'000'000, .tv_nsec = until_ns % 1'000'000'000};
    const int error = ErrorOf(sem_timedwait(&semaphore_, &until));
    EXPECT_NE(error, 0) << "no thread posts the semaphore";
    if (error == ETIMEDOUT) {
      EXPECT_GE(NowNs(CLOCK_REALTIME), until_ns) << "or the system's clock was set back meanwhile";
    }
    return error == ETIMEDOUT ? 0 : error;
  }
  int AwaitCondition() {
    std::unique_lock lock(mutex_);
    const auto ended = condition_.wait_for(lock, std::chrono::milliseconds(kWaitMs));
    return ended == std::cv_status::timeout ? 0 : EINTR;
  }

  int epoll_ = epoll_create1(EPOLL_CLOEXEC);
  std::array<int, 2> sockets_{};
  sem_t semaphore_{};
  std::mutex mutex_;
  std::condition_variable condition_;
  std::function<int()> wait_;
};

// What a thread has seen of its waits.
struct Seen {
  std::string kind;
  int waits = 0;
  int interrupted = 0;
};

void KeepWaiting(const std::atomic<bool>& is_ending, Seen& seen) {
  LongWait wait(seen.kind);
  while (!is_ending.load()) {
    const int error = wait();
    ++seen.waits;
    EXPECT_TRUE(error == 0 || error == EINTR) << seen.kind << ": " << error;
    seen.interrupted += error == EINTR ? 1 : 0;
  }
}

std::vector<Seen> OneOfEach() {
  std::vector<Seen> seen;
  for (const std::string& kind : LongWait::Kinds()) seen.push_back({.kind = kind});
  return seen;
}

int Seconds() {
  const char* const seconds = std::getenv("STROBE_TEST_WAITS_S");
  return seconds == nullptr ? 3 : std::max(std::atoi(seconds), 1);
}

TEST(LongWaits, EndEarlyOnlyWhereTheProfilerCountsIt) {
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  std::vector<Seen> sampled = OneOfEach();
  std::vector<Seen> unsampled = OneOfEach();
  std::atomic<bool> is_ending{false};
  std::vector<std::thread> threads;
  for (Seen& seen : sampled) {
    threads.emplace_back(
        [&] { RunRegistered(profiler, seen.kind.c_str(), [&] { KeepWaiting(is_ending, seen); }); });
  }
  for (Seen& seen : unsampled) threads.emplace_back([&] { KeepWaiting(is_ending, seen); });
  std::this_thread::sleep_for(std::chrono::seconds(Seconds()));
  UndisturbedWalks walks(profiler);
  EXPECT_TRUE(WaitUntil([&] { return walks.Count() >= kWalks; })) << "interrupted again and again";
  is_ending = true;
  for (std::thread& thread : threads) thread.join();
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  KeptProfiles::Take();
  std::uint64_t interrupted = 0;
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    std::printf("%s: %d waits, %d interrupted; not sampled: %d waits\n", sampled[i].kind.c_str(),
                sampled[i].waits, sampled[i].interrupted, unsampled[i].waits);
    interrupted += static_cast<std::uint64_t>(sampled[i].interrupted);
    EXPECT_EQ(unsampled[i].interrupted, 0) << unsampled[i].kind;
  }
  std::printf("%d walks from outside, %d interruptions\n", static_cast<int>(stats.waits_walked),
              static_cast<int>(stats.waits_interrupted));
  EXPECT_LE(interrupted, stats.waits_interrupted) << "without a count";
  EXPECT_EQ(stats.waits_hidden, 0U);
}

}  // namespace
}  // namespace strobe
