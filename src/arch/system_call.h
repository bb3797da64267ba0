// SystemCallBefore: which system call code of x86-64 has just made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/signal_safe.h"

namespace strobe::internal {

// The bytes of the instruction that makes a system call.
inline constexpr std::size_t kSystemCallBytes = 2;
// The most bytes of code that SystemCallBefore needs.
inline constexpr std::size_t kMaxSystemCallBytes = 12;

// The number of the system call that the last instruction of `code` makes; -1 if that instruction
// makes none, or the number is not in the instruction before it, nor in the one before that if one
// load from the stack is in between. Compilers and C libraries write it so.
STROBE_SIGNAL_SAFE int SystemCallBefore(std::span<const std::uint8_t> code);

}  // namespace strobe::internal
