// FrameInstruction: what an instruction of x86-64 does to a function's frame, and where it goes on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/x86_64.h"

namespace strobe::internal {

struct FrameInstruction {
  enum class Kind : std::uint8_t {
    kOther,         // `written` are registers that it may write
    kPush,          // of `register_number`, or of anything else, also by a call of what follows
    kPop,           // the same
    kMoveSp,        // adds `offset` to rsp
    kSpToRegister,  // register = rsp + offset
    kFpToSp,        // rsp = rbp + offset
    kLeave,         // rsp = rbp, pop rbp
    kStore,         // [rsp + offset] = register
    kLoad,          // register = [rsp + offset]
    kAddress,       // register = the address that lies `offset` behind the instruction
    kCall,          // `offset` is the target's distance from the instruction's end
    kJump,          // the same
    kBranch,        // the same: it may also go on behind it
    kJumpThrough,   // to where a register or memory says
    kReturn,
    kEnd,  // never goes on behind it: ud2, hlt, int3
    kInvalid,
  };
  // Registers in `written`, and others as kNoRegister in `register_number`.
  static constexpr unsigned kNoRegister = 16;

  Kind kind = Kind::kInvalid;
  std::uint8_t bytes = 0;
  bool has_target = false;  // of kCall: not through a register or memory
  bool is_nothing = false;  // of kOther: a nop, as stands between functions and before loops
  std::uint8_t register_number = kNoRegister;  // by its encoding
  std::uint16_t written = 0;  // a bit for each register that is written in a way of its own
  std::int32_t offset = 0;
};

// The instruction that `code` begins with, by Intel's manual, volume 2. `written` has rbx, rsp and
// rbp wherever the instruction may write one of them; other registers only by chance.
FrameInstruction DecodeFrameInstruction(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
