// AllocationSampling: samples what a program allocates, by `operator new` and the malloc family.
//
// A program that links strobe_allocations_dep has Strobe's own definitions of these functions. They
// count bytes, and call the allocator that the program would have without them: that of the C
// library, or one that is linked as a shared library or preloaded (tcmalloc, jemalloc, mimalloc). A
// program that does not link the library has nothing of it. Linux only. In a program that has its
// allocator in the executable (an archive, or -static), nothing is sampled, and status() says so.
//
//   strobe::BasicProfiler<strobe::AllocationTraits> profiler;
//   strobe::BasicScopedProfiler session(profiler);
//   strobe::AllocationSampling sampling(profiler);
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "strobe/allocations/allocation_provider.h"
#include "strobe/base/visibility.h"
#include "strobe/own_parts.h"
#include "strobe/provider/event_target.h"

namespace strobe {

// The default parts, and allocations.
struct AllocationTraits : DefaultTraits {
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider, AllocationProvider>;
};

struct AllocationOptions {
  // The mean distance in bytes of sampled points, from 1 to 2^40. An estimate of n samples has a
  // relative standard error of 1 / sqrt(n).
  std::int64_t interval_bytes = 512 << 10;
  // False leaves the values of `inuse` and `peak` at 0.
  bool live_heap = true;
};

// Of the process, since the last AllocationSampling began. What is counted here is in no profile.
struct AllocationStats {
  // Estimates of what threads have allocated while no session ran.
  std::int64_t untaken_objects = 0;
  std::int64_t untaken_bytes = 0;
  // Sampled live blocks beyond the limit (internal::LiveBlocks): they are not in the inuse values.
  std::uint64_t blocks_refused = 0;
  // Sampled blocks of the peak, freed since, that have made room for live ones: they are not in the
  // peak values.
  std::uint64_t peak_blocks_refused = 0;
  // Sampled blocks whose stack is beyond the limit (internal::StackTable): they are in [lost].
  std::uint64_t stacks_refused = 0;
};

namespace STROBE_HIDDEN internal {

AllocationStats CollectAllocationStats();

// Whether the program's malloc is Strobe's, whose allocations are sampled. False where its
// executable has an allocator of its own.
bool SeesMalloc();

// From now on samples go to `target`, which is not copied. FailedPrecondition if they go to another
// one, or if SeesMalloc() is false.
absl::Status BeginAllocations(const EventTarget& target, const AllocationOptions& options);
// From now on they go nowhere. Waits until no thread uses the target any more.
void EndAllocations();

// The leaf frames between the target's function and the caller of an allocation function: those two
// and one in between.
inline constexpr std::uint32_t kAllocationFrames = 3;

}  // namespace internal

// Samples the allocations of all threads while the object lives. The profiler, of traits whose
// providers include AllocationProvider, must outlive it, and counts samples while a session runs.
// One object at a time in a process: status() of another says so, and it does nothing.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class AllocationSampling {
 public:
  template <class Traits>
  explicit AllocationSampling(BasicProfiler<Traits>& profiler,
                              const AllocationOptions& options = {})
      : target_(internal::TargetOf<AllocationProvider, internal::kAllocationFrames>(profiler)),
        status_(internal::BeginAllocations(target_, options)) {}
  ~AllocationSampling() {
    if (status_.ok()) internal::EndAllocations();
  }
  AllocationSampling(const AllocationSampling&) = delete;
  AllocationSampling& operator=(const AllocationSampling&) = delete;

  // OK; InvalidArgument if an option is wrong; FailedPrecondition if another object lives, or if
  // the program's allocator is in its executable.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  [[nodiscard]] static AllocationStats stats() { return internal::CollectAllocationStats(); }

 private:
  const internal::EventTarget target_;
  const absl::Status status_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
