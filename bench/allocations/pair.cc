// What a malloc and its free of 64 bytes cost: bench_allocations [off|on|space] [ROUNDS]. Prints
// nanoseconds a pair. `off`: no sampling is on. `on`: 512 KiB apart, with the live heap. `space`:
// the same without the live heap. bench_allocations_bare has none of Strobe's functions.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>

#if defined(STROBE_BENCH_BARE)
int Begin(std::string_view /*mode*/) { return 0; }
#else
#include "strobe/allocations/allocation_sampling.h"

using Profiler = strobe::BasicProfiler<strobe::AllocationTraits>;

std::optional<Profiler> profiler;
std::optional<strobe::Registration> registration;
std::optional<strobe::AllocationSampling> sampling;

int Begin(std::string_view mode) {
  if (mode == "off") return 0;
  strobe::ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 0;
  options.sampling.wall_frequency_hz = 0;
  options.exporter.directory = "/tmp/strobe-bench-allocations";
  profiler.emplace(options);
  registration.emplace(profiler->RegisterThread("main"));
  if (!profiler->Start().ok()) return 1;
  sampling.emplace(*profiler, strobe::AllocationOptions{.live_heap = mode == "on"});
  return sampling->status().ok() ? 0 : 1;
}
#endif

int main(int argc, char** argv) {
  const std::int64_t rounds = argc > 2 ? std::atoll(argv[2]) : 20'000'000;
  if (const int status = Begin(argc > 1 ? argv[1] : "off"); status != 0) return status;
  std::int64_t best_ns = INT64_MAX;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < rounds; ++i) {
      void* block = std::malloc(64);
      asm volatile("" : "+r"(block) : : "memory");
      std::free(block);
    }
    const auto end = std::chrono::steady_clock::now();
    const std::int64_t ns =
        std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
    if (ns < best_ns) best_ns = ns;
  }
  std::printf("%.3f\n", static_cast<double>(best_ns) / static_cast<double>(rounds));
  return 0;
}
