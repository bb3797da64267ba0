// Waits of 50 ms under wall sampling at 100 Hz: none ends early, and all take as long as those of
// threads that nothing samples. STROBE_TEST_WAITS_S sets how many seconds that goes on; 60 is the
// long form.
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
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

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunRegistered;

constexpr int kWaitMs = 50;
constexpr std::int64_t kWaitNs = kWaitMs * 1'000'000;
// The machine that runs the tests has other work.
constexpr std::int64_t kToleranceNs = 5'000'000;

std::int64_t NowNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}
int ErrorOf(std::int64_t result) { return result < 0 ? errno : 0; }

// What one thread waits in. Each wait is one system call, and returns errno or 0.
class LongWait {
 public:
  explicit LongWait(const std::string& kind) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets_.data()), 0);
    const timeval wait{.tv_sec = 0, .tv_usec = kWaitMs * 1000};
    EXPECT_EQ(setsockopt(sockets_[0], SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait)), 0);
    sem_init(&semaphore_, 0, 0);
    if (kind == "poll") wait_ = [] { return ErrorOf(::poll(nullptr, 0, kWaitMs)); };
    if (kind == "epoll_wait") wait_ = [this] { return Epoll(); };
    if (kind == "usleep") wait_ = [] { return ErrorOf(usleep(kWaitMs * 1000)); };
    if (kind == "recv") wait_ = [this] { return Receive(); };
    if (kind == "sem_timedwait") wait_ = [this] { return AwaitSemaphore(); };
    if (kind == "condition variable") wait_ = [this] { return AwaitCondition(); };
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
  int Epoll() {
    epoll_event event{};
    return ErrorOf(epoll_wait(epoll_, &event, 1, kWaitMs));
  }
  int Receive() {
    char byte = 0;
    const int error = ErrorOf(recv(sockets_[0], &byte, 1, 0));
    return error == EAGAIN ? 0 : error;
  }
  int AwaitSemaphore() {
    const std::int64_t until_ns = NowNs(CLOCK_REALTIME) + kWaitNs;
    const timespec until{.tv_sec = until_ns / 1'000'000'000, .tv_nsec = until_ns % 1'000'000'000};
    const int error = ErrorOf(sem_timedwait(&semaphore_, &until));
    return error == ETIMEDOUT ? 0 : error;
  }
  int AwaitCondition() {
    std::unique_lock lock(mutex_);
    condition_.wait_for(lock, std::chrono::milliseconds(kWaitMs));
    return 0;
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
  std::int64_t total_ns = 0;
  [[nodiscard]] std::int64_t mean_ns() const { return total_ns / std::max(waits, 1); }
};

void WaitUntil(std::int64_t until_ns, Seen& seen) {
  LongWait wait(seen.kind);
  while (NowNs(CLOCK_MONOTONIC) < until_ns) {
    const std::int64_t begin_ns = NowNs(CLOCK_MONOTONIC);
    const int error = wait();
    seen.total_ns += NowNs(CLOCK_MONOTONIC) - begin_ns;
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

TEST(LongWaits, AreAsLongUnderTheWallProviderAsWithout) {
  if (testing::ProcessorName() != "x86_64")
    GTEST_SKIP() << "on this CPU a register that the call needs is lost";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  std::vector<Seen> sampled = OneOfEach();
  std::vector<Seen> unsampled = OneOfEach();
  std::vector<std::thread> threads;
  const std::int64_t until_ns = NowNs(CLOCK_MONOTONIC) + Seconds() * std::int64_t{1'000'000'000};
  for (Seen& seen : sampled) {
    threads.emplace_back(
        [&] { RunRegistered(profiler, seen.kind.c_str(), [&] { WaitUntil(until_ns, seen); }); });
  }
  for (Seen& seen : unsampled) threads.emplace_back([&] { WaitUntil(until_ns, seen); });
  for (std::thread& thread : threads) thread.join();
  const Stats stats = profiler.stats();
  ASSERT_TRUE(profiler.Stop().ok());
  KeptProfiles::Take();
  for (std::size_t i = 0; i < sampled.size(); ++i) {
    const Seen& seen = sampled[i];
    std::printf("%s: %d waits of %.3f ms in the mean, %d interrupted; not sampled: %.3f ms\n",
                seen.kind.c_str(), seen.waits, static_cast<double>(seen.mean_ns()) / 1e6,
                seen.interrupted, static_cast<double>(unsampled[i].mean_ns()) / 1e6);
    // The place's frame pointer costs one.
    EXPECT_LE(seen.interrupted, 1) << seen.kind;
    EXPECT_EQ(unsampled[i].interrupted, 0) << seen.kind;
    EXPECT_GE(seen.total_ns + seen.interrupted * kWaitNs, seen.waits * kWaitNs) << seen.kind;
    if (!testing::kIsSanitized) {
      EXPECT_LE(seen.mean_ns(), unsampled[i].mean_ns() + kToleranceNs) << seen.kind;
    }
  }
  std::printf("%d walks from outside, %d interruptions\n", static_cast<int>(stats.waits_walked),
              static_cast<int>(stats.waits_interrupted));
  EXPECT_EQ(stats.waits_hidden, 0U);
  EXPECT_GT(stats.waits_walked, static_cast<std::uint64_t>(Seconds()) * 20);
}

}  // namespace
}  // namespace strobe
