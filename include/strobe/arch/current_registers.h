// CurrentRegisters: the calling function's registers, for a walk that begins in that function.
#pragma once

#include <array>
#include <cstddef>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"

namespace strobe {

// True if the compiler has the assembler statements that read registers. Without them `get()` is
// nullptr.
#if defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
inline constexpr bool kReadsCurrentRegisters = true;
#else
inline constexpr bool kReadsCurrentRegisters = false;
#endif

// Construct one in the function where the walk shall begin, and keep it there until the walk has
// ended. Signal-safe.
class CurrentRegisters {
 public:
  STROBE_ALWAYS_INLINE CurrentRegisters() noexcept {
#if defined(__aarch64__) && defined(__GNUC__)
    asm volatile(
        "adr %0, .\n\t"
        "mov %1, sp\n\t"
        "mov %2, x29\n\t"
        "mov %3, x30"
        : "=&r"(registers_.pc), "=&r"(registers_.sp), "=&r"(registers_.fp), "=&r"(registers_.lr));
#elif defined(__x86_64__) && defined(__GNUC__)
    // What a function saves for its caller, in DWARF's order; on Windows rsi and rdi too.
    asm volatile(
        "leaq 0(%%rip), %0\n\t"
        "movq %%rsp, %1\n\t"
        "movq %%rbp, %2"
        : "=&r"(registers_.pc), "=&r"(registers_.sp), "=&r"(registers_.fp));
    asm volatile(
        "movq %%rbx, %0\n\t"
        "movq %%rsi, %1\n\t"
        "movq %%rdi, %2\n\t"
        "movq %%r12, %3\n\t"
        "movq %%r13, %4\n\t"
        "movq %%r14, %5\n\t"
        "movq %%r15, %6"
        : "=m"(words_[kX86_64Rbx]), "=m"(words_[4]), "=m"(words_[5]), "=m"(words_[12]),
          "=m"(words_[13]), "=m"(words_[14]), "=m"(words_[15]));
    words_[6] = registers_.fp;
    words_[7] = registers_.sp;
    registers_.general = &general_;
#endif
  }
  CurrentRegisters(const CurrentRegisters&) = delete;
  CurrentRegisters& operator=(const CurrentRegisters&) = delete;

  [[nodiscard]] const NativeRegisters* get() const noexcept {
    return kReadsCurrentRegisters ? &registers_ : nullptr;
  }

 private:
  NativeRegisters registers_;
#if defined(__x86_64__)
  std::array<Address, kX86_64GeneralRegisters> words_{};
  X86_64GeneralRegisters general_{words_.data()};
#endif
};

}  // namespace strobe
