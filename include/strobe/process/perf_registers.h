// PerfRegisters: the registers of a sample of Linux' perf events, whatever mask it was taken with.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/process/process_table.h"

namespace strobe {

// The registers that a walk needs, as bits of perf_event_attr::sample_regs_user. For the machine of
// a file of code: PerfRegisterMask(*ArchitectureOfElf(e_machine)).
constexpr std::uint64_t PerfRegisterMask(Architecture architecture = kNativeArchitecture) {
  const auto bit = [](unsigned number) { return std::uint64_t{1} << number; };
  if (architecture == Architecture::kAarch64)
    return bit(kAarch64PerfX29) | bit(kAarch64PerfX30) | bit(kAarch64PerfSp) | bit(kAarch64PerfPc);
  std::uint64_t mask = bit(kX86_64PerfPc);
  for (const unsigned number : kX86_64PerfRegisters) mask |= bit(number);
  return mask;
}

// What a sample with PERF_SAMPLE_REGS_USER has: the kind of registers, then a word for each bit of
// its event's mask, the lowest bit first.
class PerfRegisters {
 public:
  // The kinds (PERF_SAMPLE_REGS_ABI_...).
  static constexpr std::uint64_t kNone = 0;  // of a thread of the kernel: no words follow
  static constexpr std::uint64_t k32Bit = 1;
  static constexpr std::uint64_t k64Bit = 2;

  // `mask` is the event's sample_regs_user, of a machine of `architecture`. Copies what it needs of
  // `words`. Allocates nothing if the status is OK.
  PerfRegisters(Architecture architecture, std::uint64_t mask, std::uint64_t kind,
                std::span<const std::byte> words)
      : mask_(mask), words_(words), status_(Check(PerfRegisterMask(architecture), kind)) {
    if (!status_.ok()) return;
    if (architecture == Architecture::kAarch64) {
      registers_ = Aarch64Registers{.pc = Word(kAarch64PerfPc),
                                    .sp = Word(kAarch64PerfSp),
                                    .fp = Word(kAarch64PerfX29),
                                    .lr = Word(kAarch64PerfX30)};
      return;
    }
    for (std::size_t i = 0; i < general_.size(); ++i) general_[i] = Word(kX86_64PerfRegisters[i]);
    registers_ = X86_64Registers{.pc = Word(kX86_64PerfPc),
                                 .sp = general_[kX86_64Rsp],
                                 .fp = general_[kX86_64Rbp],
                                 .general = &places_};
  }
  PerfRegisters(const PerfRegisters&) = delete;
  PerfRegisters& operator=(const PerfRegisters&) = delete;

  // OK if a stack can be unwound from these. Unimplemented for a 32-bit thread, NotFound for a
  // sample without registers, FailedPrecondition for a mask that lacks some, InvalidArgument for
  // another kind or fewer words than the mask has bits.
  [[nodiscard]] const absl::Status& status() const { return status_; }
  // Zeros unless the status is OK. Valid as long as this lives.
  [[nodiscard]] const SampleRegisters& get() const { return registers_; }

 private:
  [[nodiscard]] absl::Status Check(std::uint64_t needed, std::uint64_t kind) const {
    if (kind == kNone) return absl::NotFoundError("the sample has no registers of the program");
    if (kind == k32Bit)
      return absl::UnimplementedError("the thread runs 32-bit code, which is not unwound");
    if (kind != k64Bit)
      return absl::InvalidArgumentError(absl::StrCat("registers of an unknown kind: ", kind));
    if ((mask_ & needed) != needed) {
      return absl::FailedPreconditionError(
          absl::StrCat("the event's sample_regs_user lacks the registers 0x",
                       absl::Hex(needed & ~mask_), ", without which no stack is unwound"));
    }
    if (words_.size() / sizeof(Address) < static_cast<std::size_t>(std::popcount(mask_)))
      return absl::InvalidArgumentError("the sample has fewer registers than its event says");
    return absl::OkStatus();
  }
  // That of register `number`, which the mask has.
  [[nodiscard]] Address Word(unsigned number) const {
    const std::uint64_t below = mask_ & ((std::uint64_t{1} << number) - 1);
    const auto place = static_cast<std::size_t>(std::popcount(below)) * sizeof(Address);
    Address word;
    std::memcpy(&word, words_.data() + place, sizeof(word));
    return word;
  }

  const std::uint64_t mask_;
  const std::span<const std::byte> words_;
  const absl::Status status_;
  std::array<Address, kX86_64GeneralRegisters> general_{};
  X86_64GeneralRegisters places_{general_.data()};
  SampleRegisters registers_;
};

}  // namespace strobe
