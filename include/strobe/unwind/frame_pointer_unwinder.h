// FramePointerUnwinder follows the chain of saved frame pointers. Complete only in code built with
// -fno-omit-frame-pointer; elsewhere it passes over the callers that keep none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {

STROBE_HIDDEN_BEGIN
namespace internal {

// Where the return address of the innermost function stands while the frame pointer is still, or
// again, its caller's; in words above sp.
struct X86_64FirstFrame {
  static constexpr std::uint32_t kInRegister = 0xFFFFFFFF;
  bool known = false;
  bool check_saved_fp = false;    // the saved frame pointer must equal the register
  std::uint32_t return_word = 0;  // return address = [sp + 8 * return_word]
  std::uint32_t saved_fp_word =
      kInRegister;  // caller's fp = [sp + 8 * saved_fp_word], or the register
};

// Whether `code` goes on with `bytes` at `at`.
template <std::size_t N>
constexpr bool CodeIs(std::span<const std::uint8_t> code, std::size_t at,
                      const std::uint8_t (&bytes)[N]) {
  if (at > code.size() || code.size() - at < N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    if (code[at + i] != bytes[i]) return false;
  }
  return true;
}

inline constexpr std::uint8_t kEndBranch64[] = {0xF3, 0x0F, 0x1E, 0xFA};
inline constexpr std::uint8_t kMovRbpRsp[] = {0x48, 0x89, 0xE5};
inline constexpr std::uint8_t kMovRbpRspLoadForm[] = {0x48, 0x8B, 0xEC};

constexpr bool IsX86_64Return(std::span<const std::uint8_t> code, std::size_t at) {
  if (at < code.size() && (code[at] == 0xC3 || code[at] == 0xC2)) return true;  // ret; ret imm16
  return CodeIs(code, at, {0xF3, 0xC3}) || CodeIs(code, at, {0xF2, 0xC3});      // rep ret; bnd ret
}

// From pc to the return lie only `add rsp, n` and pops: the stack pointer tells, in any function,
// with a frame pointer or without.
constexpr X86_64FirstFrame X86_64Epilogue(std::span<const std::uint8_t> code) {
  constexpr std::size_t kMaxPops = 8;
  std::size_t at = 0;
  X86_64FirstFrame frame;
  if (code.size() >= 4 && CodeIs(code, 0, {0x48, 0x83, 0xC4})) {
    if ((code[3] & 0x87) != 0) return {};  // negative, or no whole words
    frame.return_word = code[3] / 8u;
    at = 4;
  } else if (code.size() >= 7 && CodeIs(code, 0, {0x48, 0x81, 0xC4})) {
    const std::uint32_t bytes =
        code[3] | code[4] << 8 | code[5] << 16 | std::uint32_t{code[6]} << 24;
    if ((bytes & 0x80000007) != 0) return {};
    frame.return_word = bytes / 8;
    at = 7;
  }
  for (std::size_t pops = 0; pops <= kMaxPops && at < code.size(); ++pops) {
    if (IsX86_64Return(code, at)) {
      frame.known = true;
      return frame;
    }
    if (code[at] == 0x5D) {
      frame.saved_fp_word = frame.return_word;
    } else if (code[at] == 0x41 && at + 1 < code.size() && code[at + 1] >= 0x58 &&
               code[at + 1] <= 0x5F) {
      ++at;  // pop r8 .. r15
    } else if (code[at] < 0x58 || code[at] > 0x5F || code[at] == 0x5C) {
      return {};
    }
    ++at;
    ++frame.return_word;
  }
  return {};
}

// What the code at pc says. Only sequences that leave no doubt: a guess would invent a caller.
constexpr X86_64FirstFrame FirstFrameOf(const CodeWindow& code) {
  const auto after = code.after;
  if (after.empty()) return {};
  const auto is_mov = [&](std::size_t at) {
    return CodeIs(after, at, kMovRbpRsp) || CodeIs(after, at, kMovRbpRspLoadForm);
  };
  const std::size_t entry = CodeIs(after, 0, kEndBranch64) ? sizeof(kEndBranch64) : 0;
  if (entry < after.size() && after[entry] == 0x55 && is_mov(entry + 1))
    return {.known = true};                                               // about to push rbp
  if (is_mov(0) && !code.before.empty() && code.before.back() == 0x55) {  // pushed, not yet set
    return {.known = true, .check_saved_fp = true, .return_word = 1, .saved_fp_word = 0};
  }
  // A jump through the global offset table: a PLT entry, or a tail call whose frame is gone
  // already.
  if (CodeIs(after, entry, {0xFF, 0x25}) || CodeIs(after, entry, {0xF2, 0xFF, 0x25}))
    return {.known = true};
  return X86_64Epilogue(after.subspan(entry));
}

// True where x30 holds the innermost function's return address and x29 is the caller's: (pc, fp) =
// (x30, x29).
constexpr bool CallerInLinkRegister(const CodeWindow& code) {
  const auto word = [](std::span<const std::uint8_t> bytes, std::size_t at) -> std::uint32_t {
    if (bytes.size() < at + 4) return 0;
    return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 |
           std::uint32_t{bytes[at + 3]} << 24;
  };
  const auto is_store_pair =
      [](std::uint32_t instruction) {  // stp x29, x30, [sp, #n] and its pre-indexed form
        return (instruction & 0xFFC07FFF) == 0xA9007BFD || (instruction & 0xFFC07FFF) == 0xA9807BFD;
      };
  const auto is_return = [](std::uint32_t instruction) {  // ret, retaa, retab
    return instruction == 0xD65F03C0 || instruction == 0xD65F0BFF || instruction == 0xD65F0FFF;
  };
  const std::uint32_t now = word(code.after, 0);
  const std::uint32_t next = word(code.after, 4);
  if (is_return(now) || is_store_pair(now)) return true;
  if (now == 0xD503233F || now == 0xD503237F || now == 0xD503245F)
    return true;  // paciasp, pacibsp, bti c: entries
  if ((now == 0xD50323BF || now == 0xD50323FF) && is_return(next)) return true;  // autiasp, autibsp
  if ((now & 0xFF8003FF) == 0xD10003FF && is_store_pair(next)) return true;      // sub sp, sp, #n
  const bool sets_frame = (now & 0xFFC003FF) == 0x910003FD;                      // add x29, sp, #n
  return sets_frame && code.before.size() >= 4 &&
         is_store_pair(word(code.before, code.before.size() - 4));
}

}  // namespace internal
STROBE_HIDDEN_END

// Models Unwinder, for both architectures on every host. (pc, fp) = ([fp + 8], [fp]) until fp is
// zero or another small number, as the outermost function leaves it, or the return address is 0.
// Frames must rise, be aligned, and lie in memory; a return address must be one that a process can
// have. Signal-safe.
class FramePointerUnwinder {
 public:
  template <StackMemory M>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const X86_64Registers& registers, const M& memory,
                                       std::span<Address> output) const noexcept {
    if (output.empty()) return {0, StackEnd::kTruncated};
    output[0] = registers.pc;
    const internal::X86_64FirstFrame first = internal::FirstFrameOf(memory.Code(registers.pc));
    const Address fp = registers.fp;
    if (first.known) {
      Address saved_fp = fp;
      Address caller = 0;
      const bool in_register = first.saved_fp_word == internal::X86_64FirstFrame::kInRegister;
      const Address slot = registers.sp + Address{first.return_word} * 8;
      if ((registers.sp & 7) != 0 || slot < registers.sp || !memory.ReadWord(slot, caller) ||
          (!in_register &&
           !memory.ReadWord(registers.sp + Address{first.saved_fp_word} * 8, saved_fp))) {
        return {1, StackEnd::kBroken};
      }
      if (!first.check_saved_fp || saved_fp == fp) {
        if (!IsX86_64Code(caller))
          return {1, caller == 0 ? StackEnd::kComplete : StackEnd::kBroken};
        if (output.size() == 1) return {1, StackEnd::kTruncated};
        output[1] = caller - 1;
        return Follow<IsX86_64Code, kAllBits>(saved_fp, slot + 8, memory, output, 2);
      }
    }
    if (fp < kLowestAddress)
      return {1,
              StackEnd::
                  kNoUnwindInfo};  // not a single frame: this code has another use for the register
    return Follow<IsX86_64Code, kAllBits>(fp, registers.sp, memory, output, 1);
  }

  template <StackMemory M>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const Aarch64Registers& registers, const M& memory,
                                       std::span<Address> output) const noexcept {
    if (output.empty()) return {0, StackEnd::kTruncated};
    output[0] = registers.pc;
    if (!internal::CallerInLinkRegister(memory.Code(registers.pc))) {
      if (registers.fp < kLowestAddress) return {1, StackEnd::kNoUnwindInfo};
      return Follow<IsAarch64Code, kAarch64AddressBits>(registers.fp, registers.sp, memory, output,
                                                        1);
    }
    const Address caller = registers.lr & kAarch64AddressBits;
    if (!IsAarch64Code(caller)) return {1, caller == 0 ? StackEnd::kComplete : StackEnd::kBroken};
    if (output.size() == 1) return {1, StackEnd::kTruncated};
    output[1] = caller - 1;
    return Follow<IsAarch64Code, kAarch64AddressBits>(registers.fp, registers.sp, memory, output,
                                                      2);
  }

 private:
  // No system maps anything below: a frame pointer there is the end of the chain (main's is often
  // argc), a return address is nonsense.
  static constexpr Address kLowestAddress = 4096;
  static constexpr Address kFrameBytes = 16;  // saved frame pointer and return address
  static constexpr Address kAllBits = ~Address{0};
  // Pointer authentication signs return addresses in the bits above.
  static constexpr Address kAarch64AddressBits = (Address{1} << 48) - 1;
  static constexpr Address kX86_64UserLimit = Address{1} << 47;

  static constexpr bool IsX86_64Code(Address address) {
    return address - kLowestAddress < kX86_64UserLimit - kLowestAddress;
  }
  static constexpr bool IsAarch64Code(Address address) {
    return address >= kLowestAddress && (address & 3) == 0;
  }

  // Follows the chain from `fp`, which may not lie below `low`.
  template <bool (*IsCode)(Address), Address kBits, StackMemory M>
  static WalkResult Follow(Address fp, Address low, const M& memory, std::span<Address> output,
                           std::size_t count) noexcept {
    Address* const frames = output.data();
    const std::size_t limit = output.size();
    while (fp >= kLowestAddress) {
      Address caller;
      Address next;
      if (fp < low || (fp & 7) != 0 || !memory.ReadWord(fp + 8, caller) ||
          !memory.ReadWord(fp, next))
        return {count, StackEnd::kBroken};
      caller &= kBits;
      if (!IsCode(caller)) return {count, caller == 0 ? StackEnd::kComplete : StackEnd::kBroken};
      if (count == limit) return {count, StackEnd::kTruncated};
      frames[count++] = caller - 1;
      low = fp + kFrameBytes;
      fp = next;
    }
    return {count, StackEnd::kComplete};
  }
};
static_assert(Unwinder<FramePointerUnwinder>);

}  // namespace strobe
