// The suite must accept a good unwinder, however poor, and refuse bad ones.
#include "strobe/testing/unwinder_conformance.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

namespace strobe::testing {
namespace {

struct PcOnly {
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M&,
                    std::span<Address> output) const noexcept {
    if (output.empty()) return {0, StackEnd::kTruncated};
    output[0] = registers.pc;
    return {1, StackEnd::kNoUnwindInfo};
  }
};

// Writes one address more than it was given room for.
struct Overruns : PcOnly {
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M& memory,
                    std::span<Address> output) const noexcept {
    output.data()[output.size()] = 1;
    return PcOnly::Unwind(registers, memory, output);
  }
};

struct ForgetsThePc : PcOnly {
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M& memory,
                    std::span<Address> output) const noexcept {
    const WalkResult result = PcOnly::Unwind(registers, memory, output);
    if (!output.empty()) output[0] = 0;
    return result;
  }
};

template <class U>
class StackWalker : public UnwinderConformance<U> {
 public:
  void TestBody() override {}
  void WalkOnce() {
    NativeRegisters registers;
    registers.pc = 0x400000;
    this->Walk(registers, FakeStack(0x7000, {}), 4);
  }
};

TEST(UnwinderConformanceSuite, RefusesWhatItShould) {
  EXPECT_NONFATAL_FAILURE(StackWalker<Overruns>().WalkOnce(), "wrote past the output");
  EXPECT_NONFATAL_FAILURE(StackWalker<ForgetsThePc>().WalkOnce(), "registers.pc");
  StackWalker<PcOnly>().WalkOnce();
}

}  // namespace

INSTANTIATE_TYPED_TEST_SUITE_P(PcOnly, UnwinderConformance, PcOnly);

}  // namespace strobe::testing
