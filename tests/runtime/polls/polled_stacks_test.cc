#include "strobe/runtime/polls/polled_stacks.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "../session_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::SumByThread;
using testing::SumOfLeaf;
using testing::SumOfPseudo;
using Kind = ThreadActivity::Kind;
using Finds = HoldingUnwinder::Finds;

constexpr std::uint64_t kId = 1;
constexpr StackBounds kStack{.low = 0x700000, .high = 0x710000};
constexpr Address kPolledPc = 0x401000;
constexpr Address kSp = 0x70F000;
constexpr Address kFp = 0x70F100;
// So long after a round the next one is surely due.
constexpr std::int64_t kPollNs = 20'000 * kMs;

// The columns are the wall time and the off-CPU time of one thread.
class PolledStacksTest : public SessionTest {
 protected:
  void SetUp() override {
    SessionTest::SetUp();
    HoldingUnwinder::finds = Finds::kEnd;
    thread_ = Register(kId, "thread", kStack);
    Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
    Does(Kind::kWaits);
    ManualPlatform::With([](auto& state) {
      state.memory.Map(kStack.low, std::vector<std::uint8_t>(kStack.high - kStack.low));
    });
  }
  static void Does(Kind kind, Address pc = kPolledPc) {
    ManualPlatform::With([&](auto& state) { state.activity[kId] = {kind, pc, kSp}; });
  }
  // The thread runs for so long just after each time that the system has told what it does.
  static void RunsDuringWalks(std::int64_t cpu_ns) {
    ManualPlatform::With(
        [&](auto& state) { state.on_observe = [cpu_ns](auto& of) { of.cpu_ns[kId] += cpu_ns; }; });
  }
  // A round. Returns the interruptions that it asked for.
  std::vector<ManualPlatform::Interruption> Poll() {
    ManualClock::Advance(kPollNs);
    polled_ns_ += kPollNs;
    session_->Poll({}, Now());
    return ManualPlatform::With([](auto& state) { return std::exchange(state.interruptions, {}); });
  }
  // The signal arrives, and the thread needs some time for it.
  static void Deliver(const ManualPlatform::Interruption& interruption) {
    NativeRegisters registers;
    registers.pc = kPolledPc;
    registers.sp = kSp;
    registers.fp = kFp;
    ManualPlatform::RunFor(kId, 5'000);
    EXPECT_TRUE(ManualPlatform::DeliverWith(interruption.payload, 0, &registers));
    ManualPlatform::RunFor(kId, 5'000);
  }
  void ExpectAllOnStacks() {
    const Profile profile = Finish();
    EXPECT_EQ(SumByThread(profile, 0)["thread"], polled_ns_);
    EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kLost, 0), 0);
  }

  Thread* thread_ = nullptr;
  std::int64_t polled_ns_ = 0;
};

TEST_F(PolledStacksTest, AWaitIsWalkedOnceAndLeftInPeace) {
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 1U);
  ManualPlatform::RunFor(kId, 1'000'000);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 2U) << "it has run, and waits again";
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, AWalkWhoseThreadRunsMeanwhileDoesNotCount) {
  RunsDuringWalks(1'000);
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 0U);
  RunsDuringWalks(0);
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 1U);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, AThreadThatRunsIsInterruptedAsOne) {
  Does(Kind::kReady);
  RunsDuringWalks(1'000);
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  EXPECT_TRUE(interruptions[0].was_running);
  Deliver(interruptions[0]);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, AThreadThatHasJustBeenWokenIsNotInterrupted) {
  Does(Kind::kReady);
  EXPECT_TRUE(Poll().empty());
  Does(Kind::kWaits);
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 1U);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, AThreadWhoseCpuTheCollectorHasTakenIsInterrupted) {
  ManualPlatform::With([](auto& state) { state.displaced.insert(kId); });
  Does(Kind::kReady);
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  EXPECT_TRUE(interruptions[0].was_running);
  Deliver(interruptions[0]);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, WhereTheSystemDoesNotTellAWaitIsInterruptedOnce) {
  Does(Kind::kUnknown);
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  EXPECT_FALSE(interruptions[0].was_running);
  Deliver(interruptions[0]);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_hidden, 1U);
  EXPECT_EQ(counters_.waits_walked, 0U);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, WhereStacksCannotBeReadAWaitIsInterruptedOnce) {
  HoldingUnwinder::finds = Finds::kEndByFramePointer;
  ManualPlatform::With([](auto& state) { state.memory = {}; });
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  Deliver(interruptions[0]);
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_hidden, 1U);
  EXPECT_EQ(counters_.waits_interrupted, 0U);
  ExpectAllOnStacks();
}

TEST_F(PolledStacksTest, APlaceThatNeedsTheFramePointerCostsOneInterruption) {
  HoldingUnwinder::finds = Finds::kEndByFramePointer;
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  EXPECT_FALSE(interruptions[0].was_running);
  Deliver(interruptions[0]);
  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(Poll().empty());
    ManualPlatform::RunFor(kId, 1'000'000);
  }
  EXPECT_EQ(counters_.waits_interrupted, 1U);
  EXPECT_GE(counters_.waits_walked, 9U);
  Does(Kind::kWaits, 0x405000);
  EXPECT_EQ(Poll().size(), 1U) << "another place";
}

TEST_F(PolledStacksTest, AWalkTakesWhatNoCaptureHasServed) {
  Does(Kind::kUnknown);
  EXPECT_EQ(Poll().size(), 1U);  // never delivered
  Does(Kind::kWaits);
  EXPECT_TRUE(Poll().empty());
  ExpectAllOnStacks();
}

// A thread that has a CPU at some polls, and waits at the others.
TEST_F(PolledStacksTest, OnlyWaitsHaveOffCpuTime) {
  constexpr Address kRunsAt = 0x402000;
  constexpr std::int64_t kRunNs = 1'000'000'000;
  for (int i = 0; i < 10; ++i) {
    Does(Kind::kWaits);
    RunsDuringWalks(0);
    EXPECT_TRUE(Poll().empty());
    Does(Kind::kReady);
    ManualPlatform::RunFor(kId, kRunNs - 1'000);
    RunsDuringWalks(1'000);
    const auto interruptions = Poll();
    ASSERT_EQ(interruptions.size(), 1U);
    EXPECT_TRUE(ManualPlatform::Deliver(interruptions[0].payload, 0, kRunsAt));
  }
  const Profile profile = Finish();
  ASSERT_EQ(profile.value_types.size(), 2U);
  EXPECT_EQ(SumByThread(profile, 0)["thread"], polled_ns_);
  EXPECT_EQ(SumByThread(profile, 1)["thread"], polled_ns_ - 10 * kRunNs);
  EXPECT_EQ(SumOfLeaf(profile, kPolledPc, 1), polled_ns_ - 10 * kRunNs);
  EXPECT_EQ(SumOfLeaf(profile, kPolledPc, 0), polled_ns_ / 2);
  EXPECT_EQ(SumOfLeaf(profile, kRunsAt, 0), polled_ns_ / 2);
}

// The clock of the process, which tells that no idle thread has run, may be late by a tick.
TEST_F(PolledStacksTest, AStackThatWasSampledMeanwhileHasNoOffCpuTime) {
  constexpr Address kRunsAt = 0x402000;
  constexpr std::int64_t kRunNs = 100 * kMs;
  constexpr std::size_t kOffCpu = 3;
  Finish();
  Begin({.cpu_frequency_hz = 100, .wall_frequency_hz = 10, .trigger = SampleTrigger::kTimers});
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Poll().empty());
  Run(thread_, kRunNs, kRunsAt);
  ManualPlatform::With([](auto& state) { state.own_cpu_ns -= kRunNs; });
  session_->Drain();
  for (const Kind kind : {Kind::kReady, Kind::kWaits}) {
    Does(kind);
    EXPECT_TRUE(Poll().empty());
  }
  const Profile profile = Finish();
  EXPECT_GT(SumOfLeaf(profile, kRunsAt, kCpu), 0);
  EXPECT_EQ(SumOfLeaf(profile, kRunsAt, kOffCpu), 0);
  EXPECT_EQ(SumOfLeaf(profile, kRunsAt, kWall), 0);
  EXPECT_GT(SumOfLeaf(profile, kPolledPc, kOffCpu), 4 * kPollNs);
}

TEST_F(PolledStacksTest, AThreadNeverFoundWaitingHasItsOffCpuTimeAsAResidual) {
  Does(Kind::kReady);
  RunsDuringWalks(1'000);
  for (int i = 0; i < 10; ++i) {
    const auto interruptions = Poll();
    ASSERT_EQ(interruptions.size(), 1U);
    EXPECT_TRUE(ManualPlatform::Deliver(interruptions[0].payload, 0, kPolledPc));
  }
  const Profile profile = Finish();
  EXPECT_EQ(SumOfLeaf(profile, kPolledPc, 1), 0);
  EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kResidual, 1), polled_ns_ - 10'000);
}

// The wait needs an interruption: its record brings the stack.
TEST_F(PolledStacksTest, AWaitThatIsInterruptedHasOffCpuTime) {
  HoldingUnwinder::finds = Finds::kEndByFramePointer;
  const auto interruptions = Poll();
  ASSERT_EQ(interruptions.size(), 1U);
  Deliver(interruptions[0]);
  const Profile profile = Finish();
  EXPECT_EQ(SumOfLeaf(profile, kPolledPc, 1), polled_ns_ - ManualPlatform::ThreadCpuTimeNs(kId));
  EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kResidual, 1), 0);
}

TEST_F(PolledStacksTest, AnEndedRegistrationsSuccessorIsWalkedAnew) {
  EXPECT_TRUE(Poll().empty());
  Unregister(thread_);
  thread_ = Register(kId, "successor", kStack);
  EXPECT_TRUE(Poll().empty());
  EXPECT_EQ(counters_.waits_walked, 2U);
  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, 0)["thread"], kPollNs);
  EXPECT_EQ(SumByThread(profile, 0)["successor"], kPollNs);
}

}  // namespace
}  // namespace strobe::internal
