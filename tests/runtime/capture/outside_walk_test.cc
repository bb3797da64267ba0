#include "strobe/runtime/capture/outside_walk.h"

#include "../waiting_stack.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ManualPlatform;

class OutsideWalkTest : public ::testing::Test {
 protected:
  void SetUp() override { ManualPlatform::Reset(); }
  OutsideWalk<WaitTraits> walk_;
};

TEST_F(OutsideWalkTest, WithoutTheFramePointerItEndsWhereOneIsNeeded) {
  MapWaitingStack();
  walk_.Begin(kWait.pc, kWait.sp, kWaitingStack);
  EXPECT_FALSE(IsWhole(walk_.Walk(nullptr, 16).end));
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000));
}

TEST_F(OutsideWalkTest, WithItTheStackIsWhole) {
  MapWaitingStack();
  walk_.Begin(kWait.pc, kWait.sp, kWaitingStack);
  EXPECT_EQ(walk_.Walk(nullptr, 16, kWaitFp).end, StackEnd::kComplete);
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF, 0x402FFF));
  EXPECT_EQ(walk_.Walk(nullptr, 2, kWaitFp).end, StackEnd::kTruncated);
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF));
}

TEST_F(OutsideWalkTest, ALongStackIsCopiedAgainInALargerPiece) {
  constexpr Address kSp = kStackHigh - 8 * kFirstCopyBytes;
  MapStack(kStackLow, kStackHigh,
           {{kSp + 64, kStackHigh - 64}, {kSp + 72, 0x402000}, {kStackHigh - 56, 0x403000}});
  walk_.Begin(0x401000, kSp, kWaitingStack);
  EXPECT_EQ(walk_.Walk(nullptr, 16, kSp + 64).end, StackEnd::kComplete);
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF, 0x402FFF));
}

TEST_F(OutsideWalkTest, MemoryThatIsNotThereEndsAStack) {
  MapStack(kStackLow, 0x70F800, {{kWaitFp, 0x70F800}, {kWaitFp + 8, 0x402000}});
  walk_.Begin(kWait.pc, kWait.sp, kWaitingStack);
  EXPECT_EQ(walk_.Walk(nullptr, 16, kWaitFp).end, StackEnd::kBroken);
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF));
}

TEST_F(OutsideWalkTest, AStackThatGrowsIsReadBelowItsBounds) {
  MapStack(kWait.sp, kStackHigh,
           {{kWaitFp, 0x70F800}, {kWaitFp + 8, 0x402000}, {0x70F808, 0x403000}});
  walk_.Begin(kWait.pc, kWait.sp, {.low = 0x70F400, .high = kStackHigh, .grows = true});
  EXPECT_EQ(walk_.Walk(nullptr, 16, kWaitFp).end, StackEnd::kComplete) << "without the red zone";
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF, 0x402FFF));
}

}  // namespace
}  // namespace strobe::internal
