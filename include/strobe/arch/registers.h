// The registers that a walk starts from. Every architecture's type compiles on every host, so an
// aarch64 stack can be unwound in a test on x86-64. Here is also the one place that asks which CPU
// the build is for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "strobe/base/address.h"

namespace strobe {

// rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15: DWARF's order.
inline constexpr std::size_t kX86_64GeneralRegisters = 16;
inline constexpr std::size_t kX86_64Rbx = 3;

// The general registers, where they are kept elsewhere: in what the system gave the handler, say.
class X86_64GeneralRegisters {
 public:
  // Register `number` is the word places[number] of `words`; in DWARF's order without `places`.
  // Both outlive this.
  explicit X86_64GeneralRegisters(const void* words, const std::uint8_t* places = nullptr)
      : words_(words), places_(places) {}

  // By DWARF's number, below kX86_64GeneralRegisters. Signal-safe.
  [[nodiscard]] Address operator[](std::size_t number) const {
    Address value;
    std::memcpy(
        &value,
        static_cast<const Address*>(words_) + (places_ == nullptr ? number : places_[number]),
        sizeof(value));
    return value;
  }

 private:
  const void* words_;
  const std::uint8_t* places_;
};

// x86-64: the stack grows down, a call pushes the return address, `push rbp; mov rbp, rsp` makes a
// frame.
struct X86_64Registers {
  Address pc = 0;  // rip
  Address sp = 0;  // rsp
  Address fp = 0;  // rbp
  // Where they are, or nullptr: a few functions that realign their stack count from one of
  // these.
  const X86_64GeneralRegisters* general = nullptr;
};

// aarch64: a call puts the return address into lr; `stp x29, x30, [sp, ...]; mov x29, sp` makes a
// frame.
struct Aarch64Registers {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;  // x29
  Address lr = 0;  // x30
};

// Bytes below the stack pointer that the ABI keeps signal frames out of. Where a function has
// popped its caller's frame pointer, compilers' frame information goes on naming the popped slot,
// which lies here.
#if defined(__aarch64__) || defined(_M_ARM64)
using NativeRegisters = Aarch64Registers;
inline constexpr Address kRedZoneBytes = 0;
#else
using NativeRegisters = X86_64Registers;
inline constexpr Address kRedZoneBytes = 128;
#endif

}  // namespace strobe
