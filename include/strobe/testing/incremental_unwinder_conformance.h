// The further contract of an IncrementalUnwinder as tests: a walk with a memo gives the frames that
// a walk without one gives. For an unwinder of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyUnwinder, UnwinderConformance, MyUnwinder);
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyUnwinder, IncrementalUnwinderConformance, MyUnwinder);
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/testing/fakes/random_stack.h"
#include "strobe/testing/unwinder_conformance.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwinder.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe::testing {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
template <class U>
class IncrementalUnwinderConformance : public UnwinderConformance<U> {
 protected:
  // Walks with the memo and without it, and checks that both give the same stack.
  void WalkTwice(const NativeRegisters& registers, const LiveStackMemory& memory,
                 std::size_t limit) {
    const std::vector<Address> fresh = this->Walk(registers, memory, limit);
    const StackEnd fresh_end = this->result_.end;
    std::vector<Address> output(limit);
    const WalkResult result = U().Unwind(registers, memory, *memo_, output);
    ASSERT_LE(result.count + result.shared, limit);
    ASSERT_LE(result.shared, last_.size()) << "shares frames that the last walk had not";
    output.resize(result.count);
    output.insert(output.end(), last_.end() - static_cast<std::ptrdiff_t>(result.shared),
                  last_.end());
    EXPECT_EQ(output, fresh);
    EXPECT_EQ(result.end, fresh_end);
    last_ = std::move(output);
  }

 private:
  std::unique_ptr<internal::WalkMemo> memo_ = std::make_unique<internal::WalkMemo>();
  std::vector<Address> last_;  // frames of the previous walk
};
#pragma GCC diagnostic pop
TYPED_TEST_SUITE_P(IncrementalUnwinderConformance);

// Between two walks of a thread, any words, the registers, and the size of the output may change.
TYPED_TEST_P(IncrementalUnwinderConformance, AMemoChangesNoFrame) {
  constexpr std::size_t kWords = 64;
  RandomSource random(20260102);
  alignas(16) std::array<Address, kWords> words{};
  const auto base = static_cast<Address>(reinterpret_cast<std::uintptr_t>(words.data()));
  const LiveStackMemory memory(base, base + sizeof(words));
  const auto below = [&](double limit) {
    return static_cast<std::size_t>(random.Uniform() * limit);
  };
  NativeRegisters registers;
  for (int round = 0; round < 20000; ++round) {
    const std::size_t change = below(16);
    if (change == 0) {
      for (Address& word : words) word = TemptingWord(random, base, kWords);
    } else if (change <= 2) {
      registers.fp = WriteFrameChain(random, base, words);
    } else if (change <= 12) {
      for (std::size_t i = below(3); i > 0; --i)
        words[below(kWords)] = TemptingWord(random, base, kWords);
    }
    if (below(3) == 0) {
      const Address fp = registers.fp;
      registers = this->RandomRegisters(random, base, kWords);
      if (below(2) == 0) registers.fp = fp;
    }
    this->WalkTwice(registers, memory, below(8) == 0 ? 1 + below(8) : kMaxFramesLimit);
    if (this->HasFailure()) FAIL() << "in round " << round;
  }
}

REGISTER_TYPED_TEST_SUITE_P(IncrementalUnwinderConformance, AMemoChangesNoFrame);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IncrementalUnwinderConformance);

}  // namespace strobe::testing
