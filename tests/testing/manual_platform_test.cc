#include "strobe/testing/fakes/manual_platform.h"

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

class ManualPlatformTest : public ::testing::Test {
 protected:
  void SetUp() override { ManualPlatform::Reset(); }
};

TEST_F(ManualPlatformTest, ThreadsRunAsFarAsTold) {
  EXPECT_EQ(ManualPlatform::ThreadCpuTimeNs(5), 0);
  ManualPlatform::RunFor(5, 100);
  ManualPlatform::RunFor(6, 1);
  EXPECT_EQ(ManualPlatform::ThreadCpuTimeNs(5), 100);
}

TEST_F(ManualPlatformTest, TheCallingThreadIsWhoTheTestSays) {
  const std::uint64_t own_id = ManualPlatform::CurrentThreadId();
  ManualPlatform::ActAs(77);
  EXPECT_EQ(ManualPlatform::CurrentThread().id, 77u);
  std::uint64_t other_id = 0;
  auto thread = ManualPlatform::RunOnOwnThread(
      "other", [&] { other_id = ManualPlatform::CurrentThreadId(); });
  ASSERT_TRUE(thread.IsRunning());
  thread.Join();
  EXPECT_NE(other_id, 77u);
  ManualPlatform::ActAs(0);
  EXPECT_EQ(ManualPlatform::CurrentThreadId(), own_id);
}

TEST_F(ManualPlatformTest, RefusesThreadsAndTimersOnDemand) {
  ManualPlatform::Timer timer;
  EXPECT_TRUE(ManualPlatform::StartTimer(timer, 5, 9, 1, 2, 0));
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.timers.at(5).payload; }), 9u);
  ManualPlatform::StopTimer(timer);
  EXPECT_TRUE(ManualPlatform::With([](auto& state) { return state.timers.empty(); }));
  ManualPlatform::With([](auto& state) {
    state.refuses_timers = true;
    state.threads_left = 0;
  });
  EXPECT_FALSE(ManualPlatform::StartTimer(timer, 5, 9, 1, 2, 0));
  EXPECT_FALSE(ManualPlatform::RunOnOwnThread("refused", [] { FAIL(); }).IsRunning());
}

TEST_F(ManualPlatformTest, DeliversToWhomThePayloadNames) {
  static internal::CaptureTarget seen;
  internal::CaptureEntry& entry = internal::CaptureEntryOf(internal::kMaxArenas - 1);
  const internal::ChannelToken token{
      .arena = internal::kMaxArenas - 1, .provider = 1, .use = 2, .index = 3};
  EXPECT_FALSE(ManualPlatform::Deliver(token.Pack(), 1, 0x400000)) << "the arena has no owner yet";
  entry.function = [](void*, const internal::CaptureTarget& target) {
    seen = target;
    return true;
  };
  EXPECT_FALSE(ManualPlatform::Deliver(12345, 1, 0x400000)) << "no payload of ours";
  EXPECT_TRUE(ManualPlatform::Deliver(token.Pack(), 4, 0x400000));
  EXPECT_EQ(seen.token.index, 3u);
  EXPECT_EQ(seen.timer_expiries, 4);
  EXPECT_TRUE(ManualPlatform::Interrupt(5, token.Pack(), 23, true));
  EXPECT_EQ(ManualPlatform::DeliverAll(0x400000), 1);
  EXPECT_EQ(seen.timer_expiries, 0);
  EXPECT_EQ(ManualPlatform::DeliverAll(0x400000), 0);
  entry.function = nullptr;
}

}  // namespace
}  // namespace strobe::testing
