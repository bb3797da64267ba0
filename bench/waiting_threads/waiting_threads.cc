// Question: what does it cost to know where a waiting thread is? One look from outside, beside a
// signal to it; and wall sampling at 10 Hz of 2,000 threads that wait, once for all or for 200 ms
// at a time. A look at the CPU clock suffices for a thread that has not run; the place is asked of
// the system for one that has. Turns alternate; medians.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

namespace strobe::testing {
namespace {

constexpr int kThreads = 2'000;
constexpr int kTurns = 9;
constexpr int kLooks = 500;

// CPU time of the process for each of kLooks calls of look(), beyond that of `pause_ns`.
template <class Look>
double CpuOfOne(Look look, double pause_ns) {
  const std::int64_t begin_ns = ReadClockNs(CLOCK_PROCESS_CPUTIME_ID);
  for (int i = 0; i < kLooks; ++i) {
    look();
    const timespec pause{.tv_sec = 0, .tv_nsec = 100'000};
    nanosleep(&pause, nullptr);
  }
  return static_cast<double>(ReadClockNs(CLOCK_PROCESS_CPUTIME_ID) - begin_ns) / kLooks - pause_ns;
}

void CompareLooks() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  int ends[2];
  if (pipe(ends) != 0) return;
  std::atomic<std::uint64_t> id{0};
  std::thread waiting([&] {
    id = NativePlatform::CurrentThread().id;
    char byte = 0;
    if (read(ends[0], &byte, 1) != 1) std::abort();
  });
  while (id == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  NativePlatform::ThreadProbe probe(id);
  std::vector<double> clock;
  std::vector<double> place;
  std::vector<double> copy;
  std::vector<double> signal;
  std::array<std::uint8_t, 4096> bytes;
  for (int turn = 0; turn < kTurns; ++turn) {
    const double pause_ns = CpuOfOne([] {}, 0);
    ThreadActivity activity;
    clock.push_back(CpuOfOne([&] { static_cast<void>(probe.Poll()); }, pause_ns));
    place.push_back(CpuOfOne([&] { activity = probe.Observe(); }, pause_ns));
    copy.push_back(CpuOfOne(
        [&] { static_cast<void>(NativePlatform::ReadMemory(activity.sp, bytes)); }, pause_ns));
    signal.push_back(CpuOfOne([&] { pthread_kill(waiting.native_handle(), SIGUSR1); }, pause_ns));
  }
  const auto report = [](const char* contender, const std::vector<double>& cpu_ns) {
    Report("one look at a waiting thread", contender, "CPU", Median(cpu_ns) / 1e3, "us");
  };
  report("strobe, its CPU clock", clock);
  report("strobe, its place", place);
  report("strobe, a copy of 4 KiB of its stack", copy);
  report("an empty signal", signal);
  if (write(ends[1], "x", 1) != 1) std::abort();
  waiting.join();
}

// The threads wait until the end, each time for as long as this; 0 for once.
struct Room {
  BasicProfiler<NoExportTraits>& profiler;
  std::chrono::milliseconds wait{0};
  std::mutex mutex{};
  std::condition_variable changed{};
  int registered = 0;
  bool is_over = false;
};

void RunThread(Room& room) {
  const Registration registration = room.profiler.RegisterThread("waits");
  std::unique_lock lock(room.mutex);
  ++room.registered;
  while (!room.is_over) {
    if (room.wait.count() == 0) {
      room.changed.wait(lock);
      continue;
    }
    lock.unlock();
    std::this_thread::sleep_for(room.wait);
    lock.lock();
  }
}

void MeasureSession(const char* name, std::chrono::milliseconds wait, int seconds) {
  BasicProfiler<NoExportTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 10}});
  if (!profiler.Start().ok()) return;
  Room room{.profiler = profiler, .wait = wait};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&] { RunThread(room); });
  std::this_thread::sleep_for(std::chrono::seconds(3));  // all have been seen, and tables are built
  const Stats before = profiler.stats();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const Stats after = profiler.stats();
  {
    const std::lock_guard lock(room.mutex);
    room.is_over = true;
    room.changed.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  const auto per_second = [&](auto later, auto earlier) {
    return static_cast<double>(later - earlier) / seconds;
  };
  Report(name, "strobe", "collector",
         per_second(after.collector_cpu_ns, before.collector_cpu_ns) / 1e7, "% of a core");
  Report(name, "strobe", "walks", per_second(after.waits_walked, before.waits_walked), "/s");
  Report(name, "strobe", "waits interrupted",
         per_second(after.waits_interrupted + after.waits_hidden,
                    before.waits_interrupted + before.waits_hidden),
         "/s");
  Report(name, "strobe", "rounds put off", per_second(after.polls_put_off, before.polls_put_off),
         "/s");
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  using std::chrono::milliseconds;
  // Not a number is an option of other benchmarks, which run.sh gives to all.
  const int given = argc > 1 ? std::atoi(argv[1]) : 0;
  const int seconds = given > 0 ? given : 10;
  strobe::testing::CompareLooks();
  strobe::testing::MeasureSession("2,000 threads that wait, wall 10 Hz", milliseconds(0), seconds);
  strobe::testing::MeasureSession("2,000 threads that wait for 200 ms, wall 10 Hz",
                                  milliseconds(200), seconds);
  return 0;
}
