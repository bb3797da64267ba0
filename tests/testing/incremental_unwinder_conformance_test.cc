// The suite must refuse an unwinder whose memo changes a stack.
#include "strobe/testing/incremental_unwinder_conformance.h"

#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <span>

namespace strobe::testing {
namespace {

// Reports a shared frame that no walk has reached.
struct SharesFromNowhere {
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M& /*memory*/,
                    std::span<Address> output) const noexcept {
    if (output.empty()) return {0, StackEnd::kTruncated};
    output[0] = registers.pc;
    return {1, StackEnd::kNoUnwindInfo};
  }
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M& memory, internal::WalkMemo& /*memo*/,
                    std::span<Address> output) const noexcept {
    WalkResult result = Unwind(registers, memory, output);
    result.shared = 1;
    return result;
  }
};

// Writes another frame with a memo than without one.
struct ForgetsThePcWithAMemo : SharesFromNowhere {
  using SharesFromNowhere::Unwind;
  template <class M>
  WalkResult Unwind(const NativeRegisters& registers, const M& memory, internal::WalkMemo& /*memo*/,
                    std::span<Address> output) const noexcept {
    const WalkResult result = Unwind(registers, memory, output);
    if (!output.empty()) output[0] = 0;
    return result;
  }
};

template <class U>
class MemoWalker : public IncrementalUnwinderConformance<U> {
 public:
  void TestBody() override {}
  void WalkOnce() {
    NativeRegisters registers;
    registers.pc = 0x400000;
    this->WalkTwice(registers, LiveStackMemory(0, 0), 4);
  }
};

TEST(IncrementalUnwinderConformanceSuite, RefusesAMemoThatChangesAStack) {
  EXPECT_FATAL_FAILURE(MemoWalker<SharesFromNowhere>().WalkOnce(), "the last walk had not");
  EXPECT_NONFATAL_FAILURE(MemoWalker<ForgetsThePcWithAMemo>().WalkOnce(), "fresh");
}

}  // namespace
}  // namespace strobe::testing
