#include "system_call.h"

#include <cstring>

namespace strobe::internal {
namespace {

// mov imm32, %eax
constexpr std::uint8_t kLoadEax = 0xB8;
constexpr std::size_t kLoadEaxBytes = 5;

// The length of `mov disp8(%rsp), %register` at the end of `code`; 0 if there is none.
STROBE_SIGNAL_SAFE std::size_t StackLoadBytes(std::span<const std::uint8_t> code) {
  constexpr std::size_t kBytes = 4;
  if (code.size() < kBytes) return 0;
  const std::uint8_t* const load = code.data() + code.size() - kBytes;
  // The register is three bits of the second byte; 0x24 says %rsp.
  if (load[0] != 0x8B || (load[1] & 0xC7) != 0x44 || load[2] != 0x24) return 0;
  const bool has_prefix = code.size() > kBytes && (load[-1] & 0xF0) == 0x40;
  return kBytes + (has_prefix ? 1 : 0);
}

// True if `code` ends with xor %eax, %eax, and not with the same of another register, which has a
// prefix.
STROBE_SIGNAL_SAFE bool EndsWithZeroing(std::span<const std::uint8_t> code) {
  if (code.size() < 3) return false;
  const std::uint8_t* const end = code.data() + code.size();
  return end[-2] == 0x31 && end[-1] == 0xC0 && (end[-3] & 0xF0) != 0x40;
}

// The number that the last instruction of `code` loads; -1 if it loads none.
STROBE_SIGNAL_SAFE int LoadedNumber(std::span<const std::uint8_t> code) {
  if (code.size() < kLoadEaxBytes) return -1;
  const std::uint8_t* const load = code.data() + code.size() - kLoadEaxBytes;
  std::int32_t number = 0;
  std::memcpy(&number, load + 1, sizeof(number));
  if (*load == kLoadEax) return number >= 0 ? number : -1;
  return EndsWithZeroing(code) ? 0 : -1;
}

}  // namespace

STROBE_SIGNAL_SAFE int SystemCallBefore(std::span<const std::uint8_t> code) {
  if (code.size() < kSystemCallBytes || code[code.size() - 2] != 0x0F ||
      code[code.size() - 1] != 0x05)
    return -1;
  code = code.first(code.size() - kSystemCallBytes);
  const int number = LoadedNumber(code);
  if (number >= 0) return number;
  return LoadedNumber(code.first(code.size() - StackLoadBytes(code)));
}

}  // namespace strobe::internal
