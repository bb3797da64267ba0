// A small benchmark program: leaves a profile of each of its two functions, with the number of its
// iterations.
//
//   ci_program DIRECTORY ITERATIONS STEPS
//
// An iteration of Parse has STEPS steps, and one of Write has kWriteSteps.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "strobe/named_profiles.h"

namespace {

constexpr std::uint64_t kWriteSteps = 1'000'000;
volatile std::uint64_t sink = 0;

[[gnu::noinline]] void Parse(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) sink = sink * 31 + i;
}
[[gnu::noinline]] void Write(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) sink = sink + i * 7;
}

// Until the session has used this much CPU time, and at least so often.
constexpr std::int64_t kLeastCpuNs = 400'000'000;

bool Measure(strobe::NamedProfiles& profiles, const std::string& name, void (*work)(std::uint64_t),
             std::uint64_t steps, int least) {
  if (!profiles.Begin().ok()) return false;
  int iterations = 0;
  while (iterations < least || profiles.CpuTimeNs() < kLeastCpuNs) {
    work(steps);
    ++iterations;
  }
  const auto path = profiles.Keep(name, iterations);
  std::printf("%s: %d iterations\n", name.c_str(), iterations);
  return path.ok();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  strobe::NamedProfiles profiles(argv[1],
                                 {.sampling = {.cpu_frequency_hz = 1000, .max_overhead = 1}});
  const int least = std::atoi(argv[2]);
  const std::uint64_t steps = std::strtoull(argv[3], nullptr, 10);
  const bool is_ok = Measure(profiles, "Parse", Parse, steps, least) &&
                     Measure(profiles, "Write", Write, kWriteSteps, least);
  return is_ok ? 0 : 1;
}
