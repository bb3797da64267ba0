// x86-64: the registers that a walk starts from, and what this CPU's calls and code look like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "strobe/base/address.h"

namespace strobe {

// rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15: DWARF's order.
inline constexpr std::size_t kX86_64GeneralRegisters = 16;
// Bytes below the stack pointer that a function may use: see kRedZoneBytes.
inline constexpr Address kX86_64RedZoneBytes = 128;

// DWARF's numbers (System V ABI, AMD64 supplement, figure 3.36).
inline constexpr unsigned kX86_64Rbx = 3;
inline constexpr unsigned kX86_64Rbp = 6;
inline constexpr unsigned kX86_64Rsp = 7;
inline constexpr unsigned kX86_64Rip = 16;

// The numbers that Linux' perf events have for registers, in DWARF's order (asm/perf_regs.h).
inline constexpr unsigned kX86_64PerfRegisters[kX86_64GeneralRegisters] = {
    0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23};
inline constexpr unsigned kX86_64PerfPc = 8;

// The numbers that instructions, and Windows' unwind codes, have for registers.
struct X86_64Encoding {
  static constexpr unsigned kRbx = 3;
  static constexpr unsigned kRsp = 4;
  static constexpr unsigned kRbp = 5;

  static constexpr unsigned ToDwarf(unsigned number) {
    constexpr unsigned kDwarf[] = {0, 2, 1, kX86_64Rbx, kX86_64Rsp, kX86_64Rbp, 4, 5};
    return number < 8 ? kDwarf[number] : number;
  }
};

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

// Models CpuRegisters. The stack grows down, a call pushes the return address, `push rbp; mov rbp,
// rsp` makes a frame.
struct X86_64Registers {
  using GeneralRegisters = X86_64GeneralRegisters;

  Address pc = 0;  // rip
  Address sp = 0;  // rsp
  Address fp = 0;  // rbp
  // Where they are, or nullptr: a few functions that realign their stack count from one of
  // these.
  const X86_64GeneralRegisters* general = nullptr;

  // Nothing later moves the return address that a call pushed.
  static constexpr Address ReturnAddressWords(Address /*words*/) { return 1; }
  static constexpr Address PlainReturnAddress(Address return_address) { return return_address; }
  static constexpr bool IsCodeAddress(Address pc) { return pc >= kLowestCode && pc < kCodeLimit; }

  [[nodiscard]] constexpr Address link_register() const { return 0; }
  constexpr void set_link_register(Address /*value*/) {}

  // Lazy binding's trampolines realign the stack and count their CFA from rbx.
  static constexpr unsigned kSpecialRegister = kX86_64Rbx;
  static constexpr std::size_t kGeneralRegisters = kX86_64GeneralRegisters;
  [[nodiscard]] constexpr bool has_general_registers() const { return general != nullptr; }
  [[nodiscard]] Address general_register(std::size_t number) const { return (*general)[number]; }
  constexpr void set_general_registers(const GeneralRegisters* registers) { general = registers; }

 private:
  // Of the addresses that a program can have.
  static constexpr Address kCodeLimit = Address{1} << 47;
};

}  // namespace strobe
