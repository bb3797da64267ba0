// The least that profiles a program: three lines, and a profile in strobe-profiles/ when main ends.
#include <cstdint>
#include <cstdio>

#include "strobe/strobe.h"

namespace {

std::uint64_t CollatzSteps(std::uint64_t limit) {
  std::uint64_t steps = 0;
  for (std::uint64_t start = 1; start < limit; ++start) {
    for (std::uint64_t n = start; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  }
  return steps;
}

}  // namespace

int main() {
  strobe::Profiler profiler;
  auto registration = profiler.RegisterThread("main");
  strobe::ScopedProfiler session(profiler);

  std::printf("%llu steps\n", static_cast<unsigned long long>(CollatzSteps(5'000'000)));
}
