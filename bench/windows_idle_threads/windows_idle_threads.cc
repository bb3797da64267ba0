// What the sampler costs where 10, 100 and 1,000 registered threads wait, each for 10 s: how many
// threads it stopped, and the share of a CPU that it used. By Wine, what the system's own server
// did for it is not in this.
#include <windows.h>
// After it.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "../../src/platform/windows/stopped_thread.h"
#include "../no_export.h"
#include "../report.h"

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

int Main() {
  constexpr int kSeconds = 10;
  for (const int thread_count : {10, 100, 1000}) {
    const Cost cost = Measure(thread_count, kSeconds);
    const std::string contender = "strobe, " + std::to_string(thread_count) + " threads";
    Report("idle threads", contender, "stops", static_cast<double>(cost.stops), "");
    Report("idle threads", contender, "share of a CPU", cost.cpu_share * 100, "%");
  }
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main() { return strobe::testing::Main(); }
