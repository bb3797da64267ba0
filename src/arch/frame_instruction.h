// FrameInstruction: what an instruction of x86-64 does to a function's frame, and where it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/x86_64.h"
#include "written_registers.h"

namespace strobe::internal {

struct FrameInstruction {
  enum class Kind : std::uint8_t {
    kOther,
    kPush,         // of `register_number`, or of anything else, also by a call of what follows
    kPop,          // the same
    kMove,         // register = base + offset
    kLeave,        // rsp = rbp, pop rbp
    kStore,        // [base + offset] = register
    kLoad,         // register = [base + offset]
    kAddress,      // register = the address that lies `offset` behind the instruction
    kCall,         // `offset` is the target's distance from the instruction's end
    kJump,         // the same
    kBranch,       // the same: it may also go on behind it
    kJumpThrough,  // to where `register_number` or memory says
    kReturn,
    kEnd,  // never goes on behind it: ud2, hlt, int3
    kInvalid,
  };
  // Others than the general registers.
  static constexpr unsigned kNoRegister = InstructionParts::kNoRegister;

  Kind kind = Kind::kInvalid;
  std::uint8_t bytes = 0;
  bool has_target = false;  // of kCall: not through a register or memory
  bool is_nothing = false;  // of kOther: a nop, as stands between functions and before loops
  std::uint8_t register_number = kNoRegister;  // by its encoding, as all are
  std::uint8_t base_number = kNoRegister;
  // Of a jump by a table: that the instruction loads the entry, and adds the table's base to it.
  bool loads_entry = false;  // register = an entry of the table at base + offset
  bool adds_base = false;    // register += base
  std::int32_t offset = 0;
  RegisterSet written = 0;  // see WrittenRegisters
};

// The instruction that `code` begins with, by Intel's manual, volume 2.
FrameInstruction DecodeFrameInstruction(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
