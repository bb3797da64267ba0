// A program whose stacks perf samples: threads, recursion of many depths, calls back from the C
// library, exceptions.
//
//   perf_program [ROUNDS [cpu]]
//
// "cpu": says how many nanoseconds of CPU time its threads have used.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

namespace {

volatile unsigned sink = 0;

__attribute__((noinline)) unsigned Spin(unsigned rounds) {
  unsigned x = rounds;
  for (unsigned i = 0; i < rounds; ++i) x = x * 1664525u + 1013904223u;
  sink = x;
  return x;
}

__attribute__((noinline)) unsigned Descend(int depth, unsigned seed) {
  volatile unsigned local[4] = {seed, seed + 1, seed + 2, seed + 3};
  const unsigned below = depth == 0 ? Spin(20000) : Descend(depth - 1, seed * 7 + 1);
  return below + local[seed & 3];
}

int Compare(const void* a, const void* b) {
  unsigned x = 0;
  unsigned y = 0;
  std::memcpy(&x, a, sizeof(x));
  std::memcpy(&y, b, sizeof(y));
  x += Spin(4) & 0;
  return x < y ? -1 : x > y ? 1 : 0;
}

__attribute__((noinline)) void SortThroughTheLibrary(unsigned seed) {
  std::vector<unsigned> numbers(2000);
  for (unsigned& number : numbers) number = seed = seed * 1664525u + 1013904223u;
  std::qsort(numbers.data(), numbers.size(), sizeof(numbers[0]), Compare);
  sink = numbers[0];
}

__attribute__((noinline)) void Throw(int depth) {
  if (depth == 0) throw 1;
  Throw(depth - 1);
  sink = 1;
}

void Work(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    for (const int depth : {2, 10, 20, 30}) sink = Descend(depth, static_cast<unsigned>(i));
    const std::function<void()> sort = [i] { SortThroughTheLibrary(static_cast<unsigned>(i)); };
    sort();
    for (int j = 0; j < 20; ++j) {
      try {
        Throw(8);
      } catch (int) {
        sink = 2;
      }
    }
    sink = Descend(600, static_cast<unsigned>(i));  // deeper than what perf copies
  }
}

long long CpuNs() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  const long long begin_ns = CpuNs();
  std::thread other(Work, rounds);
  Work(rounds);
  other.join();
  if (argc > 2) std::printf("%lld\n", CpuNs() - begin_ns);
  return 0;
}
