// What benchmarks that measure by themselves share: turns of contenders, medians, and the lines
// that run.sh reads.
#pragma once

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace strobe::testing {

inline std::int64_t ReadClockNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
inline std::int64_t MonotonicNs() { return ReadClockNs(CLOCK_MONOTONIC); }
inline std::int64_t ThreadCpuNs() { return ReadClockNs(CLOCK_THREAD_CPUTIME_ID); }

inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline void Report(const std::string& name, const std::string& contender, const std::string& metric,
                   double value, const std::string& unit) {
  std::printf(R"({"case": "%s", "contender": "%s", "metric": "%s", "value": %.9g, "unit": "%s"})"
              "\n",
              name.c_str(), contender.c_str(), metric.c_str(), value, unit.c_str());
  std::fflush(stdout);
}

// Uses `cpu_ns` of the calling thread's CPU time, on the stack: g++ leaves the frame pointer out of
// a leaf function that uses none.
__attribute__((noinline)) inline std::uint64_t BurnCpu(std::int64_t cpu_ns) {
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  volatile std::uint64_t state = 1;
  while (ThreadCpuNs() < end_ns) {
    for (int i = 0; i < 2000; ++i) state = state * 6364136223846793005 + 1;
  }
  return state;
}

}  // namespace strobe::testing
