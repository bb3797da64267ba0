// AllocationProvider: what the program allocates, by the stack that allocates it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "strobe/allocations/live_heap.h"
#include "strobe/base/address.h"
#include "strobe/core/stack.h"
#include "strobe/core/value_type.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// Brings the samples of AllocationSampling (allocation_sampling.h), which has to be on. The names
// are those of pprof's heap profiles.
struct AllocationProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kHasLevels = true;
  // The last two are what is live when a profile's time ends; the two before, what was live when
  // most bytes were, since the sampling began. The blocks of all threads are in the rows of one
  // thread, which is called "[live]". What is live has the label "age_s": the largest of 0, 1, 10,
  // 60, 600 and 3600 that is not more than the seconds since the block was allocated.
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::array<ValueType, 6> kValueTypes{
      ValueType{"alloc_objects", "count"}, ValueType{"alloc_space", "bytes"},
      ValueType{"peak_objects", "count"},  ValueType{"peak_space", "bytes"},
      ValueType{"inuse_objects", "count"}, ValueType{"inuse_space", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }

  // See LevelProvider.
  template <class Visitor>
  void VisitLevels(Visitor&& visit) const {
    internal::VisitLiveHeap(visit);
  }
};
static_assert(LevelProvider<AllocationProvider>);

}  // namespace strobe
