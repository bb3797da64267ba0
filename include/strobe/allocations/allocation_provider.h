// AllocationProvider: what the program allocates, by the stack that allocates it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/core/value_type.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

STROBE_HIDDEN_BEGIN
namespace internal {
// Calls visit(context, leaf_first, end, amounts) for each sampled block that is live. Without
// frames, the block's stack is not known. Takes no memory.
void VisitLiveStacks(void (*visit)(void* context, std::span<const Address> leaf_first, StackEnd end,
                                   const SampledAmounts& amounts),
                     void* context);
}  // namespace internal
STROBE_HIDDEN_END

// Brings the samples of AllocationSampling (allocation_sampling.h), which has to be on. The names
// are those of pprof's heap profiles.
struct AllocationProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kHasLevels = true;
  // The last two are what is live when a profile's time ends. The blocks of all threads are in the
  // rows of one thread, which is called "[live]".
  static constexpr std::array<ValueType, 4> kValueTypes{
      ValueType{"alloc_objects", "count"}, ValueType{"alloc_space", "bytes"},
      ValueType{"inuse_objects", "count"}, ValueType{"inuse_space", "bytes"}};
  [[nodiscard]] bool enabled() const { return true; }

  // See LevelProvider.
  template <class Visitor>
  void VisitLevels(Visitor&& visit) const {
    internal::VisitLiveStacks(
        [](void* context, std::span<const Address> leaf_first, StackEnd end,
           const SampledAmounts& amounts) {
          (*static_cast<std::remove_reference_t<Visitor>*>(context))(
              leaf_first, end, std::array<std::int64_t, 4>{0, 0, amounts.count, amounts.total});
        },
        &visit);
  }
};
static_assert(LevelProvider<AllocationProvider>);

}  // namespace strobe
