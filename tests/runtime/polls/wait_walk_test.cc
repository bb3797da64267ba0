#include "strobe/runtime/polls/wait_walk.h"

#include "../waiting_stack.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::ManualPlatform;
using ::testing::Not;

class WaitWalkTest : public ::testing::Test {
 protected:
  using Walk = WaitWalk<WaitTraits>;
  void SetUp() override {
    ManualPlatform::Reset();
    MapWaitingStack();
  }
  Walk::Outcome Run() { return walk_.Run(kWait, kWaitingStack, nullptr, 16, &known_); }
  // A capture at the place that the last walk has named.
  void Learn(Address fp) {
    known_.Request(walk_.place(), 1);
    known_.Answer(2, kWait.sp, fp);
  }

  WaitFramePointers known_;
  Walk walk_;
};

TEST_F(WaitWalkTest, NamesThePlaceThatNeedsAFramePointer) {
  EXPECT_EQ(walk_.Run(kWait, kWaitingStack, nullptr, 16, nullptr), Walk::Outcome::kCut);
  EXPECT_EQ(walk_.place(), (WaitPlace{.pc = kWait.pc, .sp = kWait.sp, .frame = kWait.pc}));
}

TEST_F(WaitWalkTest, IsWholeOnceTheFramePointerIsKnown) {
  EXPECT_EQ(Run(), Walk::Outcome::kCut);
  Learn(kWaitFp);
  ASSERT_EQ(Run(), Walk::Outcome::kWhole);
  EXPECT_THAT(walk_.frames(), ElementsAre(0x401000, 0x401FFF, 0x402FFF));
  EXPECT_EQ(walk_.end(), StackEnd::kComplete);
  EXPECT_EQ(walk_.caller(), 0x401FFFU);
}

TEST_F(WaitWalkTest, AFramePointerThatLeadsToAnotherCallerThanBeforeDoesNotCount) {
  EXPECT_EQ(Run(), Walk::Outcome::kCut);
  Learn(kWaitFp);
  ASSERT_EQ(Run(), Walk::Outcome::kWhole);
  known_.Confirm(walk_.place(), walk_.caller());
  ASSERT_EQ(Run(), Walk::Outcome::kWhole);
  ManualPlatform::Reset();
  MapStack(kStackLow, kStackHigh, {{kWaitFp, 0}, {kWaitFp + 8, 0x409000}});
  EXPECT_EQ(Run(), Walk::Outcome::kCut);
  Learn(kWaitFp);
  EXPECT_EQ(Run(), Walk::Outcome::kWhole) << "the thread has told anew";
}

TEST_F(WaitWalkTest, AStackThatIsNotTheThreadsIsWalked) {
  const StackBounds other{.low = 0x900000, .high = 0x910000};
  EXPECT_EQ(walk_.Run(kWait, other, nullptr, 16, &known_), Walk::Outcome::kCut);
  Learn(kWaitFp);
  const Walk::Outcome outcome = walk_.Run(kWait, other, nullptr, 16, &known_);
  EXPECT_EQ(outcome, Walk::Outcome::kWhole);
  EXPECT_THAT(walk_.frames(), Not(IsEmpty()));
}

TEST_F(WaitWalkTest, AStackThatCannotBeReadNeedsNoFramePointer) {
  ManualPlatform::Reset();
  EXPECT_EQ(Run(), Walk::Outcome::kUnreadable);
  EXPECT_EQ(walk_.place(), WaitPlace());
}

}  // namespace
}  // namespace strobe::internal
