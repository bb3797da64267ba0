#include "strobe/runtime/drain/slot_drain.h"

#include <optional>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

class SlotDrainTest : public ::testing::Test {
 protected:
  using Slot = RegisteredThread<ManualTraits>;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    drain_.emplace(options_.collector, registry_, code_, counters_, accounts_, Recording::Time());
    registry_.arena()->max_frames = 16;
    slot_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    slot_->next = ThreadLinks();
    ThreadLinks() = slot_;
    accounts_.Attach(*slot_);
    slot_->channel->timer_period_ns = 10'000'000;  // as a provider's timer sets it
  }
  void TearDown() override {
    accounts_.Detach(*slot_);
    drain_->Finish(*slot_);
    ThreadLinks() = slot_->next;
    registry_.Unregister(slot_);
  }

  ProfilerOptions options_;
  ThreadRegistry<ManualTraits> registry_{4, 4096};
  CodeRegistry generated_;
  CollectorCounters counters_;
  LoadedCode<ManualTraits> code_{generated_, counters_.code};
  SlotAccounts<ManualTraits> accounts_{
      {.cpu_frequency_hz = 100, .wall_frequency_hz = 10}, registry_, counters_, 23};
  std::optional<SlotDrain<ManualTraits>> drain_;
  Slot* slot_ = nullptr;
};

TEST_F(SlotDrainTest, RecordsAreCountedAndReceived) {
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(ManualPlatform::Deliver(slot_->channel->token.Pack(), 2, 0x400000));
  drain_->Drain(*slot_);
  EXPECT_TRUE(slot_->channel->ring.Peek().empty());
  EXPECT_EQ(counters_.samples.load(), 3u);
  EXPECT_EQ(counters_.measured_samples.load(), 3u);
  EXPECT_EQ(slot_->accounts[0].received,
            6 * static_cast<std::uint64_t>(slot_->channel->timer_period_ns));
}

TEST_F(SlotDrainTest, AStackIsExtendedOnlyUnderTheLabelsThatItWasCapturedWith) {
  EXPECT_FALSE(drain_->ExtendLast(*slot_, 1, 100)) << "there is no stack yet";
  EXPECT_TRUE(ManualPlatform::Deliver(slot_->channel->token.Pack(), 1, 0x400000));
  drain_->Drain(*slot_);
  EXPECT_TRUE(drain_->ExtendLast(*slot_, 1, 100));
  EXPECT_EQ(slot_->channel->cells[1].credited, 100);
  EXPECT_EQ(slot_->accounts[1].received, 100u);
  slot_->channel->context.SetLabels(5);
  EXPECT_FALSE(drain_->ExtendLast(*slot_, 1, 100));
  EXPECT_EQ(slot_->channel->cells[1].credited, 100);
}

}  // namespace
}  // namespace strobe::internal
