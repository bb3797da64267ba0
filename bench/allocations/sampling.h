// What a program of this question does before its work: Begin(mode). `off`: no sampling is on.
// `on`: 512 KiB apart, with the live heap. `space`: the same without the live heap. Without
// Strobe's functions (STROBE_BENCH_BARE), the mode is ignored.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#if defined(STROBE_BENCH_BARE)
inline void Begin(std::string_view /*mode*/) {}
#else
#include "strobe/allocations/allocation_sampling.h"

inline std::optional<strobe::BasicProfiler<strobe::AllocationTraits> > profiler;
inline std::optional<strobe::Registration> registration;
inline std::optional<strobe::AllocationSampling> sampling;

inline void Begin(std::string_view mode, std::int64_t interval_bytes = 512 << 10) {
  if (mode == "off") return;
  strobe::ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 0;
  options.sampling.wall_frequency_hz = 0;
  options.exporter.directory = "/tmp/strobe-bench-allocations";
  profiler.emplace(options);
  registration.emplace(profiler->RegisterThread("main"));
  if (!profiler->Start().ok()) std::exit(1);
  sampling.emplace(*profiler, strobe::AllocationOptions{.interval_bytes = interval_bytes,
                                                        .live_heap = mode == "on"});
  if (!sampling->status().ok()) std::exit(1);
}
#endif
