// The contract of an unwinder.
#pragma once

#include <concepts>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/fetched_stack_memory.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe {

// Unwind(registers, memory, output) walks from the innermost frame outwards and is pure: it reads
// memory only through `memory`, keeps nothing between calls, allocates nothing, never faults and
// always ends, whatever the stack holds. It writes at most output.size() addresses, leaf first, as
// WalkResult describes, and never one that it did not find on the stack: where the next frame
// cannot be validated, it stops and says why. output[0] is always registers.pc. Signal-safe.
template <class U>
concept Unwinder = std::default_initializable<U> &&
    requires(const U& unwinder, const NativeRegisters& registers, const LiveStackMemory& live,
             const CopiedStackMemory& copied, const FetchedStackMemory<&ReadNothing>& fetched,
             std::span<Address> output) {
  { unwinder.Unwind(registers, live, output) }
  noexcept->std::same_as<WalkResult>;
  { unwinder.Unwind(registers, copied, output) }
  noexcept->std::same_as<WalkResult>;
  { unwinder.Unwind(registers, fetched, output) }
  noexcept->std::same_as<WalkResult>;
};

// An unwinder that can also begin where its last walk of the same thread still holds:
// Unwind(registers, memory, memo, output) comes to the same stack as Unwind(registers, memory,
// output), but writes only the frames before WalkResult::shared. Signal-safe.
template <class U>
concept IncrementalUnwinder = Unwinder<U> &&
    requires(const U& unwinder, const NativeRegisters& registers, const LiveStackMemory& live,
             internal::WalkMemo& memo, std::span<Address> output) {
  { unwinder.Unwind(registers, live, memo, output) }
  noexcept->std::same_as<WalkResult>;
};

// An unwinder by tables that need not be there: where one is missing, its walk is
// WalkResult::is_pending, and Unwind(from, memory, output) goes on with it from the frame that it
// stopped at, whose address is the first of the output once more. Without modules nothing is known,
// and nothing pending.
template <class U>
concept ResumableUnwinder = Unwinder<U> && std::constructible_from<U, const UnwindModules*> &&
    requires(const U& unwinder, const FrameState<NativeRegisters>& from,
             const CopiedStackMemory& copied, std::span<Address> output) {
  { unwinder.Unwind(from, copied, output) }
  noexcept->std::same_as<WalkResult>;
};

}  // namespace strobe
