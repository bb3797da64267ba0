// StackCopy: the stack memory of a sample that another program has taken.
#pragma once

#include <cstddef>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe {

// A copy of a stack from the stack pointer on. The stack may be longer than its copy, and a walk
// may lead to another stack, as a signal's frame on an alternate stack does. The copy knows then
// that a walk has needed more than there is. Used by one walk.
template <CpuRegisters R>
class StackCopy {
 public:
  StackCopy(const R& registers, std::span<const std::byte> bytes) noexcept
      : sp_(registers.sp), fp_(registers.fp), copy_(registers.sp, bytes) {}

  [[nodiscard]] bool ReadWord(Address address, Address& word) const noexcept {
    if (copy_.ReadWord(address, word)) return true;
    if ((address & 7) != 0) return false;
    // Perf copies no red zone. A walk looks there only for a caller's frame pointer, in a function
    // that is about to return and has popped it: the register has the value again.
    if (sp_ - address - 1 < kRedZone) {
      word = fp_;
      return true;
    }
    has_missed_ = true;
    return false;
  }
  [[nodiscard]] Address end() const noexcept { return copy_.end(); }

  // True if a walk has needed a word that is not in the copy.
  [[nodiscard]] bool has_missed() const noexcept { return has_missed_; }

 private:
  static constexpr Address kRedZone =
      ArchitectureOf<R>() == Architecture::kX86_64 ? kX86_64RedZoneBytes : 0;

  const Address sp_;
  const Address fp_;
  const CopiedStackMemory copy_;
  mutable bool has_missed_ = false;
};
static_assert(StackMemory<StackCopy<NativeRegisters>>);

}  // namespace strobe
