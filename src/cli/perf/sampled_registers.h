// SampledRegisters: the registers of a perf sample.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "perf_fields.h"
#include "strobe/arch/x86_64.h"
#include "strobe/base/address.h"

namespace strobe::internal {

class SampledRegisters {
 public:
  // `mask` has a bit for each of `words`.
  SampledRegisters(std::uint64_t mask, std::span<const std::byte> words) {
    std::array<Address, 64> by_number{};
    std::size_t next = 0;
    for (std::size_t bit = 0; bit < by_number.size(); ++bit) {
      if ((mask >> bit & 1) != 0) by_number[bit] = PerfWord(words, next++);
    }
    for (std::size_t i = 0; i < general_.size(); ++i)
      general_[i] = by_number[kX86_64PerfRegisters[i]];
    registers_ = {.pc = by_number[kX86_64PerfPc],
                  .sp = general_[kX86_64Rsp],
                  .fp = general_[kX86_64Rbp],
                  .general = &places_};
  }
  SampledRegisters(const SampledRegisters&) = delete;
  SampledRegisters& operator=(const SampledRegisters&) = delete;

  // True if a recording with that mask has all of a thread's registers.
  static bool AreIn(std::uint64_t mask) {
    const auto has = [mask](unsigned number) { return (mask >> number & 1) != 0; };
    return std::ranges::all_of(kX86_64PerfRegisters, has) && has(kX86_64PerfPc);
  }
  [[nodiscard]] const X86_64Registers& get() const { return registers_; }

 private:
  std::array<Address, kX86_64GeneralRegisters> general_{};
  X86_64GeneralRegisters places_{general_.data()};
  X86_64Registers registers_;
};

}  // namespace strobe::internal
