// Question: what does profiling at default settings cost a program, once it has started? By the
// profiler's own account: handlers, sampler and collector, as a share of the process's CPU time.
// Two busy threads; two in a 4 ms loop; 1,000 registered threads of which ten run in bursts; a
// program that does nothing, where the wakes of the profiler's own threads count; rates above the
// kernel's tick, where the samples that a second of CPU time gets count, too; and what a program
// with a worker process spends itself: its handlers, and no thread. And, as a check
// of that account, the process's CPU time for the same work with and without a session, in turns
// that hold the session's start, too.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"
#include "worker.h"

namespace strobe::testing {
namespace {

constexpr int kThreads = 2;
constexpr int kTurnMs = 2000;  // about, of each thread's CPU time

// Work with varied stacks and memory: a tree of calls, as deep as real programs go, over a table as
// large as a second-level cache.
class Work {
 public:
  __attribute__((noinline)) std::uint64_t Descend(unsigned depth, std::uint64_t value) {
    if (depth == 0) return Touch(value);
    return ((value & 1) != 0 ? DescendOdd(depth, value) : Descend(depth - 1, value >> 1)) + depth;
  }

 private:
  __attribute__((noinline)) std::uint64_t DescendOdd(unsigned depth, std::uint64_t value) {
    return Descend(depth - 1, value >> 1) * 3;
  }
  __attribute__((noinline)) std::uint64_t Touch(std::uint64_t value) {
    for (int i = 0; i < 2000; ++i) {
      value = value * 6364136223846793005 + 1;
      table_[value >> 49] += value;
    }
    return value;
  }
  std::vector<std::uint64_t> table_ = std::vector<std::uint64_t>(std::size_t{1} << 15);
};

std::int64_t ProcessCpuNs() { return ReadClockNs(CLOCK_PROCESS_CPUTIME_ID); }

volatile std::uint64_t result_sink;

// The process's CPU for `rounds` of work on each thread.
std::int64_t Turn(BasicProfiler<NoExportTraits>& profiler, bool is_profiled, std::int64_t rounds) {
  const std::int64_t begin_ns = ProcessCpuNs();
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      const Registration registration =
          is_profiled ? profiler.RegisterThread("worker") : Registration();
      Work work;
      std::uint64_t value = 1;
      for (std::int64_t round = 0; round < rounds; ++round)
        value = work.Descend(30, value * 6364136223846793005 + 1);
      result_sink = value;
    });
  }
  for (std::thread& thread : threads) thread.join();
  return ProcessCpuNs() - begin_ns;
}

void MeasureTurns(int turns) {
  BasicProfiler<NoExportTraits> profiler;
  std::int64_t rounds = 1000;
  while (Turn(profiler, false, rounds) < std::int64_t{kThreads} * kTurnMs * 500'000) rounds *= 2;
  std::vector<double> shares;
  for (int turn = 0; turn < turns; ++turn) {
    // The order changes, so that what grows with time does not count as ours.
    double cpu_ns[2] = {};
    for (const bool is_profiled : {turn % 2 == 0, turn % 2 != 0}) {
      if (is_profiled && !profiler.Start().ok()) return;
      cpu_ns[is_profiled ? 1 : 0] = static_cast<double>(Turn(profiler, is_profiled, rounds));
      if (is_profiled && !profiler.Stop().ok()) return;
    }
    shares.push_back(100 * (cpu_ns[1] / cpu_ns[0] - 1));
  }
  double mean = 0;
  double square = 0;
  for (const double share : shares) mean += share / static_cast<double>(shares.size());
  for (const double share : shares) square += (share - mean) * (share - mean);
  const std::string name = "2 busy threads, the same work in turns";
  Report(name, "strobe", "process CPU, with against without, median", Median(shares), "%");
  Report(name, "strobe", "its standard error",
         std::sqrt(square) / static_cast<double>(shares.size()), "%");
}

// By the name of each of the profiler's own threads: how often it has given up a CPU.
std::map<std::string, std::int64_t> OwnSwitches() {
  std::map<std::string, std::int64_t> switches;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::string name;
    std::getline(std::ifstream(task.path() / "comm"), name);
    if (!name.starts_with("strobe-")) continue;
    std::ifstream status(task.path() / "status");
    for (std::string line; std::getline(status, line);) {
      const std::size_t colon = line.find(':');
      if (line.starts_with("voluntary_ctxt_switches"))
        switches[name] += std::strtoll(line.c_str() + colon + 1, nullptr, 10);
    }
  }
  return switches;
}

// In the program itself, also if a worker drains the records.
std::uint64_t Walks(const Stats& stats) {
  std::uint64_t walks = 0;
  for (const std::uint64_t ends : stats.stack_ends) walks += ends;
  return walks;
}

// A session of `threads` threads, each of which runs `body` (with its number) until the end.
void MeasureSession(const std::string& name, const ProfilerOptions& options, int threads,
                    int seconds, const std::function<void(int, const std::atomic<bool>&)>& body) {
  BasicProfiler<NoExportTraits> profiler(options);
  if (!profiler.Start().ok()) return;
  std::atomic<bool> is_over{false};
  std::vector<std::thread> running;
  running.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      const Registration registration = profiler.RegisterThread("worker");
      body(i, is_over);
    });
  }
  // The first seconds have costs of their own: tables are built, and the rate finds its budget.
  std::this_thread::sleep_for(std::chrono::seconds(std::max(seconds / 3, 3)));
  const Stats begin = profiler.stats();
  const std::int64_t begin_cpu_ns = ProcessCpuNs();
  std::map<std::string, std::int64_t> switches = OwnSwitches();
  Report(name, "strobe", "threads added", static_cast<double>(switches.size()), "");
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const Stats end = profiler.stats();
  const auto cpu_ns = static_cast<double>(ProcessCpuNs() - begin_cpu_ns);
  for (const auto& [thread, count] : OwnSwitches()) {
    Report(name, "strobe", "wakes of " + thread,
           static_cast<double>(count - switches[thread]) / seconds, "/s");
  }
  is_over = true;
  is_over.notify_all();
  for (std::thread& thread : running) thread.join();
  static_cast<void>(profiler.Stop());
  if (threads == 0) return;
  const auto handler_ns = static_cast<double>(end.handler_time_ns - begin.handler_time_ns);
  const auto collector_ns = static_cast<double>(end.collector_cpu_ns - begin.collector_cpu_ns);
  Report(name, "strobe", "handler + collector", 100 * (handler_ns + collector_ns) / cpu_ns, "%");
  Report(name, "strobe", "handler", 100 * handler_ns / cpu_ns, "%");
  Report(name, "strobe", "collector", 100 * collector_ns / cpu_ns, "%");
  if (end.samples != begin.samples) {  // a worker drains them elsewhere
    Report(name, "strobe", "samples a second of CPU time",
           1e9 * static_cast<double>(end.samples - begin.samples) / cpu_ns, "/s");
  }
  Report(name, "strobe", "stacks walked in handlers, a second of CPU time",
         1e9 * static_cast<double>(Walks(end) - Walks(begin)) / cpu_ns, "/s");
}

void SleepFor(std::int64_t ns) {
  const timespec pause{.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
  nanosleep(&pause, nullptr);
}

void Compute(int number, const std::atomic<bool>& is_over) {
  Work work;
  auto value = static_cast<std::uint64_t>(number) + 1;
  while (!is_over) value = work.Descend(30, value * 6364136223846793005 + 1);
  result_sink = value;
}

// The same few stacks all the time.
void ComputePlainly(int /*number*/, const std::atomic<bool>& is_over) {
  while (!is_over) BurnCpu(1'000'000);
}

// Works for 2 ms of each 4 ms.
void RunLoop(int /*number*/, const std::atomic<bool>& is_over) {
  std::int64_t next_ns = MonotonicNs();
  while (!is_over) {
    BurnCpu(2'000'000);
    next_ns += 4'000'000;
    const timespec until{.tv_sec = next_ns / 1'000'000'000, .tv_nsec = next_ns % 1'000'000'000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

// Ten of the threads work for 2 ms and sleep for 18 ms; the others wait for the end.
void RunInBursts(int number, const std::atomic<bool>& is_over) {
  while (!is_over) {
    if (number >= 10) {
      is_over.wait(false);
      return;
    }
    BurnCpu(2'000'000);
    SleepFor(18'000'000);
  }
}

int Run(int turns, int seconds, bool has_worker) {
  MeasureSession("2 busy threads, every stack another", {}, 2, seconds, &Compute);
  MeasureSession("2 busy threads, few stacks", {}, 2, seconds, &ComputePlainly);
  if (has_worker) {
    const ProfilerOptions options{.worker = {.enabled = true}};
    MeasureSession("2 busy threads, every stack another, with a worker", options, 2, seconds,
                   &Compute);
    MeasureSession("2 busy threads, few stacks, with a worker", options, 2, seconds,
                   &ComputePlainly);
  }
  MeasureSession("2 threads in a 4 ms loop", {}, 2, seconds, &RunLoop);
  MeasureSession("1,000 threads, of which 10 run in bursts", {}, 1'000, seconds, &RunInBursts);
  MeasureSession("a program that does nothing", {}, 0, seconds, [](int, const auto&) {});
  for (const double rate_hz : {1'000, 10'000}) {
    // One thread: the other CPU is the sampler's.
    MeasureSession("1 busy thread at " + std::to_string(static_cast<int>(rate_hz)) + " Hz",
                   {.sampling = {.cpu_frequency_hz = rate_hz, .max_overhead = 1}}, 1, seconds,
                   &Compute);
  }
  MeasureTurns(turns);
  return 0;
}

}  // namespace
}  // namespace strobe::testing

// bench_overhead [SECONDS [TURNS]]
int main(int argc, char** argv) {
  const bool has_worker = strobe::testing::ServeIfAsked(argc, argv);
  // Not numbers are options of other benchmarks, which run.sh gives to all.
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 0;
  const int turns = argc > 2 ? std::atoi(argv[2]) : 0;
  return strobe::testing::Run(turns > 0 ? turns : 10, seconds > 0 ? seconds : 20, has_worker);
}
