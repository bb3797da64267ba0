// Hand-made unwind information of Windows for x64: unwind codes as functions, and the UNWIND_INFO
// around them.
#pragma once

#include <cstdint>

#include "support/bytes.h"

namespace strobe::testing {

// The instruction set's numbers of registers, as unwind codes have them.
enum Number : std::uint8_t {
  kNumberRbx = 3,
  kNumberRbp = 5,
  kNumberRsi = 6,
  kNumberRdi = 7,
  kNumberR12 = 12,
  kNumberR13 = 13
};

// Unwind codes; `at` is the offset of the instruction's end in the prologue.
inline Bytes Code(std::uint8_t at, std::uint8_t operation, std::uint8_t info) {
  return {at, static_cast<std::uint8_t>(operation | info << 4)};
}
inline Bytes Push(std::uint8_t at, Number number) { return Code(at, 0, number); }
inline Bytes AllocateLarge(std::uint8_t at, std::uint16_t words) {
  return Join({Code(at, 1, 0), Fixed(words)});
}
inline Bytes AllocateHuge(std::uint8_t at, std::uint32_t bytes) {
  return Join({Code(at, 1, 1), Fixed(bytes)});
}
inline Bytes AllocateSmall(std::uint8_t at, std::uint8_t bytes) {
  return Code(at, 2, static_cast<std::uint8_t>((bytes - 8) / 8));
}
inline Bytes SetFrame(std::uint8_t at) { return Code(at, 3, 0); }
inline Bytes Save(std::uint8_t at, Number number, std::uint16_t words) {
  return Join({Code(at, 4, number), Fixed(words)});
}
inline Bytes SaveFar(std::uint8_t at, Number number, std::uint32_t bytes) {
  return Join({Code(at, 5, number), Fixed(bytes)});
}
inline Bytes SaveXmm(std::uint8_t at) { return Join({Code(at, 8, 6), Fixed(std::uint16_t{2})}); }
inline Bytes SaveXmmFar(std::uint8_t at) {
  return Join({Code(at, 9, 6), Fixed(std::uint32_t{32})});
}
inline Bytes MachineFrame(bool has_error_code) { return Code(0, 10, has_error_code ? 1 : 0); }

struct InfoOptions {
  std::uint8_t version = 1;
  std::uint8_t frame_register = 0;
  std::uint8_t frame_offset = 0;  // in units of 16
  const Bytes* continued = nullptr;
};

// `codes`, the last instruction of the prologue first, as .xdata has them.
inline Bytes UnwindInfo(std::uint8_t prologue_bytes, const Bytes& codes,
                        const InfoOptions& options = {}) {
  const std::uint8_t flags = options.continued != nullptr ? 4 : 0;
  Bytes info =
      Join({{static_cast<std::uint8_t>(options.version | flags << 3), prologue_bytes,
             static_cast<std::uint8_t>(codes.size() / 2),
             static_cast<std::uint8_t>(options.frame_register | options.frame_offset << 4)},
            codes});
  info.resize((info.size() + 3) / 4 * 4);
  return options.continued != nullptr ? Join({info, *options.continued}) : info;
}

}  // namespace strobe::testing
