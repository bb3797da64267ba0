// A shared library whose constructor works for a while, if the environment asks for that.

#include <cstdlib>

extern "C" int StatusOfLibrary();

#include "program_work.h"

namespace {

using strobe::testing::ThreadCpuS;

constexpr double kSeconds = 0.2;  // as the test expects

volatile unsigned long sum;

[[gnu::noinline]] void WorkOfConstructor() {
  const double end = ThreadCpuS() + kSeconds;
  while (ThreadCpuS() < end) {
    for (unsigned long i = 0; i < 10'000; ++i) sum = sum + i;
  }
}

[[gnu::constructor]] void Load() {
  if (std::getenv("RECORDED_SLOW_LIBRARY") != nullptr) WorkOfConstructor();
}

}  // namespace

int StatusOfLibrary() { return sum == 0 ? 1 : 0; }
