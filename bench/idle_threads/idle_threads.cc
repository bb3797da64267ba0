// Question: what do 10,000 registered threads that do nothing cost in 10 s? Context switches of
// theirs, and resident bytes each beyond the same threads unregistered. Each case is a process of
// its own. Threads of both cases have called malloc once: nearly every thread does, and what the
// allocator then keeps for it is not the profiler's.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

namespace strobe::testing {
namespace {

constexpr int kThreads = 10'000;
constexpr std::size_t kStackBytes = 64 * 1024;

// Where the threads wait for the end.
struct Room {
  BasicProfiler<NoExportTraits>* profiler = nullptr;  // where they register first
  std::mutex mutex;
  std::condition_variable changed;
  int waiting = 0;
  bool is_over = false;
  bool is_refused = false;
};

__attribute__((noinline)) void Wait(Room& room) {
  std::unique_lock lock(room.mutex);
  if (++room.waiting == kThreads) room.changed.notify_all();
  room.changed.wait(lock, [&] { return room.is_over; });
}

void* RunThread(void* argument) {
  Room& room = *static_cast<Room*>(argument);
  void* volatile memory = std::malloc(100);  // volatile: or it would not happen
  std::free(memory);
  if (room.profiler == nullptr) {
    Wait(room);
    return nullptr;
  }
  const Registration registration = room.profiler->RegisterThread("idle");
  if (!registration.status().ok()) room.is_refused = true;
  Wait(room);
  return nullptr;
}

std::int64_t ReadField(const std::string& path, const std::string& field) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":"))
      return std::strtoll(line.c_str() + field.size() + 1, nullptr, 10);
  }
  return 0;
}

std::int64_t ResidentBytes() { return ReadField("/proc/self/smaps_rollup", "Rss") * 1024; }

// Of all threads but the profiler's own.
std::int64_t ContextSwitches() {
  std::int64_t sum = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (name.starts_with("strobe-") || task.path().filename() == std::to_string(getpid())) continue;
    const std::string status = task.path() / "status";
    sum += ReadField(status, "voluntary_ctxt_switches") +
           ReadField(status, "nonvoluntary_ctxt_switches");
  }
  return sum;
}

struct Cost {
  std::int64_t context_switches = 0;
  std::int64_t session_bytes = 0;   // a session without a thread
  std::int64_t resident_bytes = 0;  // beyond that
  std::int64_t process_cpu_ns = 0;
  bool is_good = false;
};

Cost Measure(bool is_registered, int seconds) {
  Cost cost;
  BasicProfiler<NoExportTraits> profiler;
  const std::int64_t at_begin = ResidentBytes();
  if (is_registered && (!profiler.Start().ok() || !profiler.Flush().ok())) return cost;
  const std::int64_t without_threads = ResidentBytes();
  cost.session_bytes = without_threads - at_begin;
  Room room;
  if (is_registered) room.profiler = &profiler;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  std::vector<pthread_t> threads(kThreads);
  for (pthread_t& thread : threads) {
    if (pthread_create(&thread, &attributes, &RunThread, &room) != 0) return cost;
  }
  {
    std::unique_lock lock(room.mutex);
    room.changed.wait(lock, [&] { return room.waiting == kThreads; });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // all are asleep
  cost.resident_bytes = ResidentBytes() - without_threads;
  const std::int64_t before = ContextSwitches();
  const std::int64_t cpu_before_ns = ReadClockNs(CLOCK_PROCESS_CPUTIME_ID);
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  cost.process_cpu_ns = ReadClockNs(CLOCK_PROCESS_CPUTIME_ID) - cpu_before_ns;
  cost.context_switches = ContextSwitches() - before;
  {
    const std::lock_guard lock(room.mutex);
    room.is_over = true;
    room.changed.notify_all();
  }
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
  cost.is_good = !room.is_refused;
  return cost;
}

// In a child, so that neither case finds what the other left in the allocator.
Cost MeasureApart(bool is_registered, int seconds) {
  Cost cost;
  int channel[2];
  if (pipe(channel) != 0) return cost;
  const pid_t child = fork();
  if (child == 0) {
    cost = Measure(is_registered, seconds);
    const bool is_sent = write(channel[1], &cost, sizeof(cost)) == sizeof(cost);
    _exit(is_sent ? 0 : 1);
  }
  close(channel[1]);
  if (read(channel[0], &cost, sizeof(cost)) != sizeof(cost)) cost.is_good = false;
  close(channel[0]);
  waitpid(child, nullptr, 0);
  return cost;
}

int Run(int seconds) {
  const Cost bare = MeasureApart(false, seconds);
  const Cost registered = MeasureApart(true, seconds);
  if (!bare.is_good || !registered.is_good) {
    std::fprintf(stderr, "idle_threads: %d threads could not be started or registered\n", kThreads);
    return 1;
  }
  const auto report = [&](const char* contender, const Cost& cost) {
    Report("10,000 idle threads", contender, "context switches",
           static_cast<double>(cost.context_switches), "");
    Report("10,000 idle threads", contender, "resident a thread",
           static_cast<double>(cost.resident_bytes) / kThreads, "B");
    Report("10,000 idle threads", contender, "process CPU",
           static_cast<double>(cost.process_cpu_ns) / 1e6 / seconds, "ms/s");
  };
  report("strobe", registered);
  report("unregistered", bare);
  Report("a session without threads", "strobe", "resident",
         static_cast<double>(registered.session_bytes) / 1024, "KiB");
  Report("10,000 idle threads", "strobe", "resident beyond the unregistered thread",
         static_cast<double>(registered.resident_bytes - bare.resident_bytes) / kThreads, "B");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  // Not a number is an option of other benchmarks, which run.sh gives to all.
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 0;
  return strobe::testing::Run(seconds > 0 ? seconds : 10);
}
