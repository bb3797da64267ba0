// Question: does wall sampling at 100 Hz disturb waits? Threads wait for 50 ms at a time in six
// ways that a signal would end early; with a session and without, in turns: how many ended with
// EINTR, and how long they took.
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

namespace strobe::testing {
namespace {

constexpr int kWaitMs = 50;
constexpr std::int64_t kWaitNs = std::int64_t{kWaitMs} * 1'000'000;
constexpr int kTurns = 3;

// Each waits once; false if the wait was interrupted.
bool WaitInPoll() { return poll(nullptr, 0, kWaitMs) == 0; }
bool WaitInUsleep() { return usleep(kWaitMs * 1000) == 0; }
bool WaitInEpoll() {
  thread_local const int set = epoll_create1(0);
  epoll_event event{};
  return epoll_wait(set, &event, 1, kWaitMs) == 0;
}
bool WaitInReceive() {
  thread_local const int end = [] {
    int ends[2] = {-1, -1};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
    const timeval limit{.tv_sec = 0, .tv_usec = kWaitMs * 1000};
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return ends[0];
  }();
  char byte = 0;
  return recv(end, &byte, 1, 0) < 0 && errno == EAGAIN;
}
bool WaitForSemaphore() {
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  const std::int64_t until_ns = until.tv_nsec + kWaitNs;
  until.tv_sec += until_ns / 1'000'000'000;
  until.tv_nsec = until_ns % 1'000'000'000;
  return sem_timedwait(&semaphore, &until) != 0 && errno == ETIMEDOUT;
}
bool WaitForCondition() {
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, std::chrono::milliseconds(kWaitMs)) == std::cv_status::timeout;
}

struct Way {
  const char* name;
  bool (*wait)();
};
constexpr std::array kWays{
    Way{"poll", &WaitInPoll},
    Way{"usleep", &WaitInUsleep},
    Way{"epoll_wait", &WaitInEpoll},
    Way{"recv with a timeout", &WaitInReceive},
    Way{"sem_timedwait", &WaitForSemaphore},
    Way{"a condition variable", &WaitForCondition},
};

struct Waits {
  std::int64_t count = 0;
  std::int64_t interrupted = 0;
  std::int64_t time_ns = 0;
};
using WaitsByWay = std::array<Waits, kWays.size()>;

void Turn(BasicProfiler<NoExportTraits>& profiler, bool is_profiled, int seconds,
          WaitsByWay& waits) {
  const std::int64_t end_ns = MonotonicNs() + std::int64_t{seconds} * 1'000'000'000;
  std::vector<std::thread> threads;
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    threads.emplace_back([&, way] {
      const Registration registration =
          is_profiled ? profiler.RegisterThread(kWays[way].name) : Registration();
      while (MonotonicNs() < end_ns) {
        const std::int64_t begin_ns = MonotonicNs();
        if (!kWays[way].wait()) ++waits[way].interrupted;
        waits[way].time_ns += MonotonicNs() - begin_ns;
        ++waits[way].count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int Run(int seconds) {
  BasicProfiler<NoExportTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 100, .max_overhead = 1}});
  WaitsByWay bare;
  WaitsByWay profiled;
  for (int turn = 0; turn < kTurns; ++turn) {
    Turn(profiler, false, seconds / kTurns, bare);
    if (!profiler.Start().ok()) return 1;
    Turn(profiler, true, seconds / kTurns, profiled);
    if (!profiler.Stop().ok()) return 1;
  }
  for (std::size_t way = 0; way < kWays.size(); ++way) {
    const auto report = [&](const char* contender, const Waits& waits) {
      Report(kWays[way].name, contender, "waits", static_cast<double>(waits.count), "");
      Report(kWays[way].name, contender, "interrupted", static_cast<double>(waits.interrupted), "");
      Report(kWays[way].name, contender, "mean wait",
             static_cast<double>(waits.time_ns) / 1e6 / static_cast<double>(waits.count), "ms");
    };
    report("strobe", profiled[way]);
    report("no session", bare[way]);
  }
  const Stats stats = profiler.stats();
  const auto seen = static_cast<double>(stats.waits_walked + stats.waits_interrupted);
  Report("all waits", "strobe", "walked from outside",
         100 * static_cast<double>(stats.waits_walked) / seen, "%");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

// bench_waits [SECONDS]
int main(int argc, char** argv) {
  // Not a number is an option of other benchmarks, which run.sh gives to all.
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 0;
  return strobe::testing::Run(seconds > 0 ? seconds : 60);
}
