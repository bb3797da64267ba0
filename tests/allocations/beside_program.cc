// A program that links the allocation functions beside an allocator of its own. It says on standard
// error whether they are sampled. With an argument, it does without pvalloc.
#include <cstdio>

#include "every_allocation.h"
#include "strobe/allocations/allocation_sampling.h"

int main(int argc, char** /*argv*/) {
  strobe::BasicProfiler<strobe::AllocationTraits> profiler;
  strobe::BasicScopedProfiler session(profiler);
  const strobe::AllocationSampling sampling(profiler);
  std::fprintf(stderr, "sampling: %s\n", sampling.status().ToString().c_str());
  strobe::testing::UseEveryFunction(argc == 1);
}
