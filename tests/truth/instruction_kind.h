// What an instruction of x86-64 does to the stack of calls.
#pragma once

#include <cstdint>

#include "strobe/base/address.h"

namespace strobe::testing {

enum class InstructionKind { kOther, kCall, kReturn, kSystemCall };

// Of the instruction at `at`; byte_at(address) is a byte of code.
template <class ByteAt>
InstructionKind KindOfInstruction(Address at, ByteAt&& byte_at) {
  std::uint8_t byte = byte_at(at);
  for (int prefixes = 0; prefixes < 8; ++prefixes) {
    const bool is_prefix = (byte & 0xF0) == 0x40 || byte == 0x66 || byte == 0x67 || byte == 0xF2 ||
                           byte == 0xF3 || byte == 0x2E || byte == 0x3E || byte == 0x64 ||
                           byte == 0x65;
    if (!is_prefix) break;
    byte = byte_at(++at);
  }
  switch (byte) {
    case 0xE8: return InstructionKind::kCall;
    case 0xC2:
    case 0xC3: return InstructionKind::kReturn;
    case 0xFF:
      return (byte_at(at + 1) & 0x38) == 0x10 ? InstructionKind::kCall : InstructionKind::kOther;
    case 0x0F:
      return byte_at(at + 1) == 0x05 ? InstructionKind::kSystemCall : InstructionKind::kOther;
    default: return InstructionKind::kOther;
  }
}

}  // namespace strobe::testing
