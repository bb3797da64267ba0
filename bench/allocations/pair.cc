// What a malloc and its free of 64 bytes cost: bench_allocations [off|on|space] [ROUNDS]. Prints
// nanoseconds a pair, of the best of many short times: on a busy machine some have the processor to
// themselves. bench_allocations_bare has none of Strobe's functions.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sampling.h"

int main(int argc, char** argv) {
  Begin(argc > 1 ? argv[1] : "off");
  const std::int64_t rounds = argc > 2 ? std::atoll(argv[2]) : 50'000;
  std::int64_t best_ns = INT64_MAX;
  for (int repeat = 0; repeat < 2000; ++repeat) {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < rounds; ++i) {
      void* block = std::malloc(64);
      asm volatile("" : "+r"(block) : : "memory");
      std::free(block);
    }
    const auto end = std::chrono::steady_clock::now();
    best_ns = std::min(best_ns,
                       std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count());
  }
  std::printf("%.3f\n", static_cast<double>(best_ns) / static_cast<double>(rounds));
}
