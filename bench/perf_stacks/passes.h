// How long a contender takes to unwind all samples, again and again.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "samples.h"

namespace strobe::bench {

// unwind(sample, frames) returns how many frames it has written. Prints the times; and, to
// `stacks`, each stack as a line, for a comparison.
template <class Unwind>
void MeasurePasses(const char* contender, const Recording& recording, const char* stacks,
                   const Unwind& unwind) {
  constexpr int kPasses = 7;
  std::array<Address, 1024> frames{};
  std::vector<double> times;
  std::uint64_t found = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    found = 0;
    const std::clock_t begin = std::clock();  // CPU time: other programs may run
    for (const Sample& sample : recording.samples) found += unwind(sample, frames);
    const auto time = static_cast<double>(std::clock() - begin);
    times.push_back(time * 1e9 / CLOCKS_PER_SEC / static_cast<double>(recording.samples.size()));
  }
  Report(contender, "first pass", times[0], "ns/sample");
  std::sort(times.begin() + 1, times.end());
  Report(contender, "time", times[kPasses / 2 + 1], "ns/sample");
  const auto samples = static_cast<double>(recording.samples.size());
  Report(contender, "frames", static_cast<double>(found) / samples, "frames/sample");
  std::FILE* const file = std::fopen(stacks, "w");
  if (file == nullptr) return;
  for (const Sample& sample : recording.samples) {
    const std::size_t count = unwind(sample, frames);
    for (std::size_t i = 0; i < count; ++i)
      std::fprintf(file, "%llx ", static_cast<unsigned long long>(frames[i]));
    std::fputc('\n', file);
  }
  std::fclose(file);
}

}  // namespace strobe::bench
