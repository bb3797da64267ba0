// A shared library whose constructor works for a while, if the environment asks for that.
#include <time.h>

#include <cstdlib>

extern "C" int StatusOfLibrary();

namespace {

constexpr double kSeconds = 0.2;  // as the test expects

volatile unsigned long sum;

double CpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

[[gnu::noinline]] void WorkOfConstructor() {
  const double end = CpuSeconds() + kSeconds;
  while (CpuSeconds() < end) {
    for (unsigned long i = 0; i < 10'000; ++i) sum = sum + i;
  }
}

[[gnu::constructor]] void Load() {
  if (std::getenv("RECORDED_SLOW_LIBRARY") != nullptr) WorkOfConstructor();
}

}  // namespace

int StatusOfLibrary() { return sum == 0 ? 1 : 0; }
