// aarch64: the registers that a walk starts from, and what this CPU's calls and code look like.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"

namespace strobe {

// DWARF's numbers (DWARF for the Arm 64-bit Architecture, section 4.1).
inline constexpr unsigned kAarch64X29 = 29;
inline constexpr unsigned kAarch64X30 = 30;
inline constexpr unsigned kAarch64Sp = 31;

// The numbers that Linux' perf events have for registers (asm/perf_regs.h).
inline constexpr unsigned kAarch64PerfX29 = 29;
inline constexpr unsigned kAarch64PerfX30 = 30;
inline constexpr unsigned kAarch64PerfSp = 31;
inline constexpr unsigned kAarch64PerfPc = 32;

// Where the frame that Linux pushes when a signal comes has the interrupted registers, in bytes
// from sp: part of the system's interface. A siginfo_t of 128 bytes comes first, then a ucontext_t,
// in which 176 bytes and the fault's address precede the registers.
inline constexpr std::int32_t kAarch64SignalFrameX0 = 128 + 176 + 8;
inline constexpr std::int32_t kAarch64SignalFrameX29 = kAarch64SignalFrameX0 + 29 * 8;
inline constexpr std::int32_t kAarch64SignalFrameX30 = kAarch64SignalFrameX29 + 8;
inline constexpr std::int32_t kAarch64SignalFrameSp = kAarch64SignalFrameX30 + 8;
inline constexpr std::int32_t kAarch64SignalFramePc = kAarch64SignalFrameSp + 8;

// No general register is kept beside those of Aarch64Registers: no function counts from another.
struct Aarch64GeneralRegisters {
  constexpr Aarch64GeneralRegisters() = default;
  constexpr explicit Aarch64GeneralRegisters(const void* /*words*/) {}
};

// Models CpuRegisters. A call puts the return address into lr; `stp x29, x30, [sp, ...]; mov x29,
// sp` makes a frame.
struct Aarch64Registers {
  using GeneralRegisters = Aarch64GeneralRegisters;

  Address pc = 0;
  Address sp = 0;
  Address fp = 0;  // x29
  Address lr = 0;  // x30

  static constexpr Address ReturnAddressWords(Address words) { return words; }
  // Pointer authentication signs return addresses in the bits above an address.
  static constexpr Address PlainReturnAddress(Address return_address) {
    return return_address & ((Address{1} << 48) - 1);
  }
  static constexpr bool IsCodeAddress(Address pc) { return pc >= kLowestCode && (pc & 3) == 0; }

  [[nodiscard]] constexpr Address link_register() const { return lr; }
  constexpr void set_link_register(Address value) { lr = value; }

  static constexpr unsigned kSpecialRegister = ~0u;  // none
  static constexpr std::size_t kGeneralRegisters = 0;
  [[nodiscard]] static constexpr bool has_general_registers() { return false; }
  [[nodiscard]] static constexpr Address general_register(std::size_t /*number*/) { return 0; }
  static constexpr void set_general_registers(const GeneralRegisters* /*registers*/) {}
};

}  // namespace strobe
