#include "strobe/runtime/drain/channel_drain.h"

#include <optional>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

class ChannelDrainTest : public ::testing::Test {
 protected:
  using Thread = RegisteredThread<ManualTraits>;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    drain_.emplace(options_.collector, registry_, code_, counters_, accounts_, Recording::Time());
    registry_.arena()->max_frames = 16;
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    thread_->next = RegistrationLinks();
    RegistrationLinks() = thread_;
    accounts_.Attach(*thread_);
    thread_->channel->timer_period_ns = 10'000'000;  // as a provider's timer sets it
  }
  void TearDown() override {
    accounts_.Detach(*thread_);
    drain_->Finish(*thread_);
    RegistrationLinks() = thread_->next;
    registry_.Unregister(thread_);
  }

  ProfilerOptions options_;
  ThreadRegistry<ManualTraits> registry_{4, 4096};
  CodeRegistry generated_;
  CollectorCounters counters_;
  LoadedCode<ManualTraits> code_{generated_, counters_.code};
  ThreadAccounts<ManualTraits> accounts_{
      {.cpu_frequency_hz = 100, .wall_frequency_hz = 10}, registry_, counters_, 23};
  std::optional<ChannelDrain<ManualTraits>> drain_;
  Thread* thread_ = nullptr;
};

TEST_F(ChannelDrainTest, RecordsAreCountedAndReceived) {
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(ManualPlatform::Deliver(thread_->channel->token.Pack(), 2, 0x400000));
  drain_->Drain(*thread_);
  EXPECT_TRUE(thread_->channel->ring.Peek().empty());
  EXPECT_EQ(counters_.samples.load(), 3u);
  EXPECT_EQ(counters_.measured_samples.load(), 3u);
  EXPECT_EQ(thread_->accounts[0].received,
            6 * static_cast<std::uint64_t>(thread_->channel->timer_period_ns));
}

TEST_F(ChannelDrainTest, AStackIsExtendedOnlyUnderTheLabelsThatItWasCapturedWith) {
  EXPECT_FALSE(drain_->ExtendLast(*thread_, 1, 100)) << "there is no stack yet";
  EXPECT_TRUE(ManualPlatform::Deliver(thread_->channel->token.Pack(), 1, 0x400000));
  drain_->Drain(*thread_);
  EXPECT_TRUE(drain_->ExtendLast(*thread_, 1, 100));
  EXPECT_EQ(thread_->channel->cells[1].credited, 100);
  EXPECT_EQ(thread_->accounts[1].received, 100u);
  thread_->channel->context.SetLabels(5);
  EXPECT_FALSE(drain_->ExtendLast(*thread_, 1, 100));
  EXPECT_EQ(thread_->channel->cells[1].credited, 100);
}

}  // namespace
}  // namespace strobe::internal
