// The suite must refuse an unwinder that does not continue where a table was missing.
#include "strobe/testing/resumable_unwinder_conformance.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

#include "strobe/unwind/chain_unwinder.h"

namespace strobe::testing {
namespace {

using Cfi = ChainUnwinder<CfiStep>;

// Ends the stack where a table is missing.
struct GivesUp : Cfi {
  using Cfi::Cfi;
  template <class From, class M>
  WalkResult Unwind(const From& from, const M& memory, std::span<Address> output) const noexcept {
    WalkResult result = Cfi::Unwind(from, memory, output);
    has_given_up |= std::exchange(result.is_pending, false);
    return result;
  }
  static inline bool has_given_up = false;
};

// Waits for tables that it has.
struct StaysPending : Cfi {
  using Cfi::Cfi;
  using Cfi::Unwind;
  template <class M>
  WalkResult Unwind(const FrameState<NativeRegisters>& from, const M& memory,
                    std::span<Address> output) const noexcept {
    WalkResult result = Cfi::Unwind(from, memory, output);
    result.is_pending = true;
    return result;
  }
};

template <class U>
class ResumingWalker : public ResumableUnwinderConformance<U> {
 public:
  void TestBody() override {}
  // Walks stacks until a walk has met a missing table.
  void WalkUntil(const bool& is_done) {
    alignas(16) std::array<Address, 64> words{};
    const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
    NativeRegisters registers;
    registers.sp = base;
    while (this->resumed() == 0 && !is_done) {
      registers.fp = WriteFrameChain(this->random_, base, words);
      registers.pc = this->kText + this->Below(static_cast<double>(this->kTextBytes));
      this->WalkInParts(registers, LiveStackMemory(base, base + sizeof(words)));
    }
  }
};

TEST(ResumableUnwinderConformanceSuite, RefusesWhatItShould) {
  EXPECT_FATAL_FAILURE(ResumingWalker<GivesUp>().WalkUntil(GivesUp::has_given_up),
                       "Expected equality");
  EXPECT_FATAL_FAILURE(ResumingWalker<StaysPending>().WalkUntil(false), "walk.is_pending");
  ResumingWalker<Cfi>().WalkUntil(false);
}

}  // namespace
}  // namespace strobe::testing
