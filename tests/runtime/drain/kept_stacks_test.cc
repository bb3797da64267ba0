#include "strobe/runtime/drain/kept_stacks.h"

#include <array>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::array<Address, 2> kFrames{0x1000, 0x2000};

TEST(KeptStacks, AreFoundByTheirNumbers) {
  KeptStacks kept;
  kept.Add(5, kFrames, StackEnd::kTruncated);
  EXPECT_EQ(kept.Find(6), nullptr);
  const KeptStacks::Stack* const stack = kept.Find(5);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->leaf_first, (std::vector<Address>{0x1000, 0x2000}));
  EXPECT_EQ(stack->end, StackEnd::kTruncated);
}

TEST(KeptStacks, ThatNobodyAsksForAreForgotten) {
  KeptStacks kept;
  kept.Add(5, kFrames, StackEnd::kComplete);
  kept.Add(6, kFrames, StackEnd::kComplete);
  for (int i = 0; i < 10; ++i) {
    EXPECT_NE(kept.Find(5), nullptr);
    kept.ForgetUnused();
    if (i == 0) {
      EXPECT_NE(kept.Find(6), nullptr) << "it may have been new";
    }
  }
  EXPECT_EQ(kept.Find(6), nullptr);
}

TEST(KeptStacks, HaveALimit) {
  KeptStacks kept;
  for (std::uint64_t number = 1; number <= KeptStacks::kMaxStacks + 1; ++number)
    kept.Add(number, kFrames, StackEnd::kComplete);
  EXPECT_NE(kept.Find(KeptStacks::kMaxStacks), nullptr);
  EXPECT_EQ(kept.Find(KeptStacks::kMaxStacks + 1), nullptr);
}

}  // namespace
}  // namespace strobe::internal
