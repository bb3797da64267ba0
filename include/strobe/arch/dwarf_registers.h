// DwarfRegisters: which of DWARF's register numbers are those that a walk recovers.
#pragma once

#include <cstdint>

#include "strobe/arch/registers.h"

namespace strobe {

// DWARF's numbers; kNoRegister for a register that the CPU does not have, or walks do not follow.
struct DwarfRegisters {
  unsigned sp = kNoRegister;
  unsigned fp = kNoRegister;
  unsigned special = kNoRegister;  // CpuRegisters::kSpecialRegister
  unsigned lr = kNoRegister;
  unsigned pc = kNoRegister;

  // True if the return address stays in a register until a function saves it.
  [[nodiscard]] constexpr bool ra_is_register() const { return lr != kNoRegister; }
};

constexpr DwarfRegisters DwarfRegistersOf(Architecture architecture) {
  if (architecture == Architecture::kAarch64)
    return {.sp = kAarch64Sp,
            .fp = kAarch64X29,
            .special = Aarch64Registers::kSpecialRegister,
            .lr = kAarch64X30,
            .pc = kNoRegister};
  return {.sp = kX86_64Rsp,
          .fp = kX86_64Rbp,
          .special = X86_64Registers::kSpecialRegister,
          .lr = kNoRegister,
          .pc = kX86_64Rip};
}

}  // namespace strobe
