// DecodeEpilogueInstruction: the instructions of x86-64 that the ends of functions are made of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/x86_64.h"

namespace strobe::internal {

struct EpilogueInstruction {
  enum class Kind : std::uint8_t { kOther, kRelease, kPop, kLeave, kNothing, kJumpWithin, kExit };
  Kind kind = Kind::kOther;
  std::size_t bytes = 0;
  unsigned register_number =
      X86_64Encoding::kRsp;  // popped, or that the stack pointer is taken from
  std::int32_t offset = 0;   // added to it, or of a jump's target from the function's start
};

// The instruction at `at` of the function whose code is `function`. kOther, without a length, for
// every instruction that no epilogue has, and for one that does not end within the function.
EpilogueInstruction DecodeEpilogueInstruction(std::span<const std::uint8_t> function,
                                              std::size_t at);

}  // namespace strobe::internal
