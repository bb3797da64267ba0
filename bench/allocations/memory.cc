// What it takes to follow sampled blocks until they are freed: bench_allocations_memory on|space
// BLOCKS. Every block is sampled, from 64 stacks. Prints by how many bytes the resident set grows
// from the begin of sampling on.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sampling.h"

namespace {

std::int64_t ResidentBytes() {
  long long pages = 0;
  std::FILE* const file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr || std::fscanf(file, "%*d %lld", &pages) != 1) std::abort();
  std::fclose(file);
  return pages * sysconf(_SC_PAGESIZE);
}

__attribute__((noinline)) void* MakeBelow(int depth) {
  void* block = depth == 0 ? std::malloc(16) : MakeBelow(depth - 1);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 1;
  const int blocks = std::atoi(argv[2]);
  const std::int64_t before = ResidentBytes();
  Begin(argv[1], 1);
  void* unused = std::malloc(std::size_t{1} << 30);  // surely reaches the first sampled point
  asm volatile("" : "+r"(unused) : : "memory");
  std::free(unused);
  for (int i = 0; i < blocks; ++i) static_cast<void>(MakeBelow(i % 64));
  if (strobe::AllocationSampling::stats().blocks_refused != 0) return 1;
  std::printf("%lld\n", static_cast<long long>(ResidentBytes() - before));
  std::fflush(stdout);
  _exit(0);
}
