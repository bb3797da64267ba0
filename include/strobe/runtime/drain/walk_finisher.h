// WalkFinisher: finishes the walks of records whose captures lacked a table.
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
#include "strobe/runtime/channels/stack_slice.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Collector only.
template <class Unwinder>
class WalkFinisher {
 public:
  // Finishes the walk in `slice` by `tables`. Changes `stack` from the recorded part to the whole
  // stack, which stays valid until the next call. If a table is still missing, returns the address
  // of its code, and leaves `stack` alone. The walk ends at code for which has_gone(address) is
  // true: the tables describe what is at that address now, not that code.
  template <class WasUnloaded>
  std::optional<Address> Finish(const UnwindModules* tables, std::span<const std::byte> slice,
                                std::size_t max_frames, const WasUnloaded& has_gone,
                                StackDelta& stack) {
    // Only captures of a resumable unwinder write slices.
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

}  // namespace internal
}  // namespace strobe
