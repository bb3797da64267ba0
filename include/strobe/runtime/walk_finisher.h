// WalkFinisher: goes on with the walks of records whose captures had no table for the rest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "strobe/aggregate/aggregator.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/runtime/stack_slice.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Collector only.
template <class Unwinder>
class WalkFinisher {
 public:
  // Goes on with the walk in `slice` by `tables`: from `stack`, as the record has it, to what it
  // is, which stays valid until the next call. Where a table is still missing, returns the address
  // of the code that it is missing of, and leaves `stack` alone. The walk ends at code that
  // has_gone(address): what is known of that address now is not known of that code.
  template <class HasGone>
  std::optional<Address> Finish(const UnwindModules* tables, std::span<const std::byte> slice,
                                std::size_t max_frames, const HasGone& has_gone,
                                StackDelta& stack) {
    // Of another unwinder no capture writes a slice.
    if constexpr (ResumableUnwinder<Unwinder>) {
      const std::size_t recorded = std::max<std::size_t>(stack.leaf_first.size(), 1) - 1;
      frames_.assign(stack.leaf_first.begin(), stack.leaf_first.end());
      const WalkResult walk = FinishWalk(Unwinder(tables), slice, frames_, max_frames);
      StackEnd end = walk.end;
      const auto last = std::find_if(frames_.begin() + static_cast<std::ptrdiff_t>(recorded),
                                     frames_.end(), has_gone);
      if (last != frames_.end()) {
        end = StackEnd::kNoUnwindInfo;
        frames_.erase(last + 1, frames_.end());
      } else if (walk.is_pending) {
        return walk.stop.is_exact ? walk.stop.pc : walk.stop.pc - 1;
      }
      stack.end = end;
      stack.shared = 0;
      stack.leaf_first = frames_;
    }
    return std::nullopt;
  }

 private:
  std::vector<Address> frames_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
