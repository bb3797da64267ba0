// Question: what share of a busy program's CPU does profiling at 100 Hz take? By the profiler's own
// account (handler and collector; naming and encoding, once a minute, stand by themselves), and by
// the process's CPU for the same work with and without, in turns.
#include <sys/resource.h>

#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

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

std::int64_t ProcessCpuNs() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ns = [](const timeval& time) {
    return (std::int64_t{time.tv_sec} * 1'000'000 + time.tv_usec) * 1000;
  };
  return ns(usage.ru_utime) + ns(usage.ru_stime);
}

volatile std::uint64_t result_sink;

// The process's CPU for `rounds` of work on each thread.
std::int64_t Turn(BasicProfiler<NoExportTraits>& profiler, bool is_profiled, std::int64_t rounds) {
  const std::int64_t begin_ns = ProcessCpuNs();
  std::vector<std::thread> threads;
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

int Run(int turns) {
  BasicProfiler<NoExportTraits> profiler;
  std::int64_t rounds = 1000;
  while (Turn(profiler, false, rounds) < std::int64_t{kThreads} * kTurnMs * 500'000) rounds *= 2;
  std::vector<double> shares;
  double profiled_ns = 0;
  for (int turn = 0; turn < turns; ++turn) {
    // The order changes, so that what grows with time does not count as ours.
    double cpu_ns[2] = {};
    for (const bool is_profiled : {turn % 2 == 0, turn % 2 != 0}) {
      if (is_profiled && !profiler.Start().ok()) return 1;
      cpu_ns[is_profiled ? 1 : 0] = static_cast<double>(Turn(profiler, is_profiled, rounds));
      if (is_profiled && !profiler.Stop().ok()) return 1;
    }
    profiled_ns += cpu_ns[1];
    shares.push_back(100 * (cpu_ns[1] / cpu_ns[0] - 1));
  }
  const Stats stats = profiler.stats();
  const auto percent = [&](double ns) { return 100 * ns / profiled_ns; };
  const auto handler_ns = static_cast<double>(stats.handler_time_ns);
  const auto collector_ns = static_cast<double>(stats.collector_cpu_ns);
  const std::string name = "100 Hz, " + std::to_string(kThreads) + " busy threads";
  Report(name, "strobe", "handler + collector", percent(handler_ns + collector_ns), "%");
  Report(name, "strobe", "handler", percent(handler_ns), "%");
  Report(name, "strobe", "collector", percent(collector_ns), "%");
  double mean = 0;
  double square = 0;
  for (const double share : shares) mean += share / static_cast<double>(shares.size());
  for (const double share : shares) square += (share - mean) * (share - mean);
  Report(name, "strobe", "process CPU, with against without, median", Median(shares), "%");
  Report(name, "strobe", "its standard error",
         std::sqrt(square) / static_cast<double>(shares.size()), "%");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

// bench_overhead [TURNS]
int main(int argc, char** argv) {
  const int turns = argc > 1
                        ? std::atoi(argv[1])
                        : 0;  // 0 for the options of other benchmarks, which run.sh gives to all
  return strobe::testing::Run(turns > 0 ? turns : 10);
}
