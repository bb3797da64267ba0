// CpuRegisters: what unwinding asks of a CPU. Every architecture's model compiles on every host, so
// an aarch64 stack can be unwound in a test on x86-64. Here is also the one place that asks which
// CPU the build is for.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "strobe/arch/aarch64.h"
#include "strobe/arch/x86_64.h"
#include "strobe/base/address.h"

namespace strobe {

// The registers of a frame: `pc`, `sp` and `fp` are members. All functions are signal-safe.
// * ReturnAddressWords(words): how many words below the CFA a frame keeps its return address, where
//   its unwind rule says `words`; 0 if the link register still holds the address.
// * PlainReturnAddress(address): without what the CPU adds to a return address.
// * IsCodeAddress(pc): false if no code can lie there.
// * link_register(), set_link_register(value): the register that a call puts the return address
//   into; 0, and no effect, on a CPU that has none.
// * kSpecialRegister: DWARF's number of the register, beside sp and fp, that walks follow through
//   the frames, because a function may count its CFA from it; kNoRegister if there is none.
// * has_general_registers(), general_register(number), set_general_registers(registers): the values
//   of other registers in the innermost frame, if they are kept. `number` is DWARF's, below
//   kGeneralRegisters. Only call general_register if has_general_registers().
template <class R>
concept CpuRegisters = std::is_trivially_copyable_v<R> &&
    requires(R& registers, const R& constant, Address address, std::size_t number,
             const typename R::GeneralRegisters* general, const void* words) {
  { constant.pc } -> std::convertible_to<Address>;
  { constant.sp } -> std::convertible_to<Address>;
  { constant.fp } -> std::convertible_to<Address>;
  { R::ReturnAddressWords(address) } -> std::same_as<Address>;
  { R::PlainReturnAddress(address) } -> std::same_as<Address>;
  { R::IsCodeAddress(address) } -> std::same_as<bool>;
  { constant.link_register() } -> std::same_as<Address>;
  { registers.set_link_register(address) } -> std::same_as<void>;
  { R::kSpecialRegister } -> std::convertible_to<unsigned>;
  { R::kGeneralRegisters } -> std::convertible_to<std::size_t>;
  { constant.has_general_registers() } -> std::same_as<bool>;
  { constant.general_register(number) } -> std::same_as<Address>;
  { registers.set_general_registers(general) } -> std::same_as<void>;
  {typename R::GeneralRegisters(words)};
};
static_assert(CpuRegisters<X86_64Registers>);
static_assert(CpuRegisters<Aarch64Registers>);

// DWARF's number of no register.
inline constexpr unsigned kNoRegister = ~0u;
static_assert(Aarch64Registers::kSpecialRegister == kNoRegister);

// General registers of the CPU that has the most: records have room for so many on every CPU.
inline constexpr std::size_t kMaxGeneralRegisters = kX86_64GeneralRegisters;

// The CPU that some code is for.
enum class Architecture : std::uint8_t { kX86_64, kAarch64 };

template <CpuRegisters R>
constexpr Architecture ArchitectureOf() {
  return std::same_as<R, Aarch64Registers> ? Architecture::kAarch64 : Architecture::kX86_64;
}

// The architecture of an ELF file, by its e_machine; nothing for one whose stacks are not unwound.
constexpr std::optional<Architecture> ArchitectureOfElf(std::uint16_t machine) {
  constexpr std::uint16_t kMachineX86_64 = 62;
  constexpr std::uint16_t kMachineAarch64 = 183;
  if (machine == kMachineX86_64) return Architecture::kX86_64;
  if (machine == kMachineAarch64) return Architecture::kAarch64;
  return std::nullopt;
}

// Those of the process itself. kRedZoneBytes: bytes below the stack pointer that the ABI keeps
// signal frames out of. Where a function has popped its caller's frame pointer, compilers' frame
// information goes on naming the popped slot, which lies here.
#if defined(__aarch64__) || defined(_M_ARM64)
using NativeRegisters = Aarch64Registers;
inline constexpr Architecture kNativeArchitecture = Architecture::kAarch64;
inline constexpr Address kRedZoneBytes = 0;
#else
using NativeRegisters = X86_64Registers;
inline constexpr Architecture kNativeArchitecture = Architecture::kX86_64;
inline constexpr Address kRedZoneBytes = kX86_64RedZoneBytes;
#endif

}  // namespace strobe
