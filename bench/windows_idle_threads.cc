// windows_idle_threads [SECONDS]: what the sampler costs where 10, 100 and 1,000 registered threads
// wait, each for SECONDS (10): how many threads it stopped, and the share of a CPU that it used. By
// Wine, what the system's own server did for it is not in this.
#include <windows.h>
// After it.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../src/platform/windows/stopped_thread.h"
#include "no_export.h"

namespace strobe::testing {
namespace {

struct Cost {
  std::uint64_t stops = 0;
  double cpu_share = 0;
};

Cost Measure(int thread_count, int seconds) {
  constexpr DWORD kSettleMs = 2000;
  const HANDLE end = CreateEventW(nullptr, TRUE, FALSE, nullptr);
  BasicProfiler<NoExportTraits> profiler;
  if (!profiler.Start().ok()) std::abort();
  std::atomic<int> waiting{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < thread_count; ++i) {
    threads.emplace_back([&] {
      const Registration registration = profiler.RegisterThread("idle");
      if (!registration.status().ok()) std::abort();
      ++waiting;
      WaitForSingleObject(end, INFINITE);
    });
  }
  while (waiting != thread_count) Sleep(1);
  Sleep(kSettleMs);
  const std::uint64_t stops = internal::GlobalStopCounters().stopped;
  const std::int64_t cpu_ns = profiler.stats().collector_cpu_ns;
  Sleep(static_cast<DWORD>(seconds) * 1000);
  const Cost cost{
      .stops = internal::GlobalStopCounters().stopped - stops,
      .cpu_share = static_cast<double>(profiler.stats().collector_cpu_ns - cpu_ns) / 1e9 / seconds};
  SetEvent(end);
  for (std::thread& thread : threads) thread.join();
  if (!profiler.Stop().ok()) std::abort();
  CloseHandle(end);
  return cost;
}

int Main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (seconds < 1) {
    std::fprintf(stderr, "usage: windows_idle_threads [SECONDS], one at least\n");
    return 2;
  }
  double first_share = 0;
  for (const int thread_count : {10, 100, 1000}) {
    const Cost cost = Measure(thread_count, seconds);
    if (first_share == 0) first_share = cost.cpu_share;
    std::printf("%4d idle threads: %llu stops, sampler %.2f %% of a CPU", thread_count,
                static_cast<unsigned long long>(cost.stops), cost.cpu_share * 100);
    // A short run of few threads may cost less than a step of the clock.
    if (first_share > 0) std::printf(": %.2f x", cost.cpu_share / first_share);
    std::printf("\n");
  }
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Main(argc, argv); }
