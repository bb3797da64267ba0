#include "strobe/unwind/unwinder.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

// The least that the concept accepts, and what it refuses.
struct PcOnly {
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M&,
                    std::span<Address> output) const noexcept {
    if (output.empty()) return {0, StackEnd::kTruncated};
    output[0] = registers.pc;
    return {1, StackEnd::kNoUnwindInfo};
  }
};
struct LiveOnly {
  WalkResult Unwind(const NativeRegisters&, const LiveStackMemory&,
                    std::span<Address>) const noexcept {
    return {};
  }
};
struct MayThrow {
  template <class M>
  WalkResult Unwind(const NativeRegisters&, const M&, std::span<Address>) const {
    return {};
  }
};
static_assert(Unwinder<PcOnly>);
static_assert(!Unwinder<LiveOnly>, "deferred unwinding needs copies");
static_assert(!Unwinder<MayThrow>, "it runs in a signal handler");

TEST(Unwinder, LeastModelWorks) {
  Address frames[2] = {};
  NativeRegisters registers;
  registers.pc = 42;
  const WalkResult result = PcOnly().Unwind(registers, LiveStackMemory(0, 0), frames);
  EXPECT_EQ(result.count, 1u);
  EXPECT_EQ(frames[0], 42u);
}

}  // namespace
}  // namespace strobe
