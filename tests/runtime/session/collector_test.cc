#include "strobe/runtime/session/collector.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::kMs;
using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

bool Eventually(const std::function<bool()>& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

// A real collector thread, whose time the test moves.
class CollectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    thread_->next = RegistrationLinks();
    RegistrationLinks() = thread_;
  }
  void TearDown() override {
    if (collector_ != nullptr) collector_->End();
    if (session_ != nullptr) {
      session_->End();
      session_->FinishAll();
    }
    RegistrationLinks() = thread_->next;
    registry_.Unregister(thread_);
  }
  void Begin() {
    session_ = std::make_unique<Session<ManualTraits>>(options_, registry_, code_, counters_, 23);
    registry_.BeginCollecting();
    collector_ = std::make_unique<Collector<ManualTraits>>(
        options_, *session_, counters_,
        Collector<ManualTraits>::Callbacks{.end_period =
                                               [this] {
                                                 ++periods_;
                                                 return !refuses_.load();
                                               },
                                           .check_handler = [this] { ++checks_; }});
    ASSERT_TRUE(collector_->Begin().ok());
    session_->Begin();
    // The collector has begun to wait: from here on its time is ours.
    ASSERT_TRUE(collector_->EndPeriod(In(60)) || refuses_);
    periods_ = 0;
  }
  static std::chrono::steady_clock::time_point In(int seconds) {
    return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  }
  std::uint64_t payload() {
    return ManualPlatform::With([](auto& state) { return state.timers.at(1).payload; });
  }

  ProfilerOptions options_{.sampling = {.trigger = SampleTrigger::kTimers},
                           .collector = {.drain_period_ms = 10},
                           .exporter = {.period_s = 60}};
  ThreadRegistry<ManualTraits> registry_{10, 32 * 1024};
  CodeRegistry generated_;
  RegisteredThread<ManualTraits>* thread_ = nullptr;
  CollectorCounters counters_;
  LoadedCode<ManualTraits> code_{generated_, counters_.code};
  std::unique_ptr<Session<ManualTraits>> session_;
  std::unique_ptr<Collector<ManualTraits>> collector_;
  std::atomic<int> periods_{0};
  std::atomic<int> checks_{0};
  std::atomic<bool> refuses_{false};
};

TEST_F(CollectorTest, DrainsByItself) {
  Begin();
  ASSERT_TRUE(ManualPlatform::Deliver(payload(), 1, 0x400000));
  const std::uint64_t drains = counters_.drains;
  ManualClock::Advance(kMaxDrainPeriodNs);
  EXPECT_TRUE(Eventually([&] { return counters_.drains == drains + 1; }));
  EXPECT_EQ(counters_.samples, 1u);
  EXPECT_EQ(periods_, 0);
}

TEST_F(CollectorTest, DrainsTwiceAsOftenWhileRingsRunHalfFull) {
  options_.collector = {.drain_period_ms = 40};
  options_.sampling.max_frames = 16;
  Begin();
  while (thread_->channel->ring.used_bytes() < 20 * 1024)
    ASSERT_TRUE(ManualPlatform::Deliver(payload(), 1, 0x400000));
  const std::uint64_t drains = counters_.drains;
  ManualClock::Advance(80 * kMs);  // the drain before found nothing
  ASSERT_TRUE(Eventually([&] { return counters_.drains == drains + 1; }));
  ManualClock::Advance(40 * kMs);
  EXPECT_TRUE(Eventually([&] { return counters_.drains == drains + 2; }));
}

TEST_F(CollectorTest, AThreadThatComesEndsALongWait) {
  Begin();
  for (const std::int64_t stretch : {2, 4, 8}) {
    const std::uint64_t drains = counters_.drains;
    ManualClock::Advance(stretch * 10 * kMs);
    collector_->ExpectMore();  // wakes it, so that the test need not wait
    ASSERT_TRUE(Eventually([&] { return counters_.drains > drains; }));
  }
  const std::uint64_t drains = counters_.drains;
  collector_->ExpectMore();
  ManualClock::Advance(10 * kMs);
  EXPECT_TRUE(Eventually([&] { return counters_.drains > drains; }))
      << "the time between drains begins with the option again";
}

TEST(NextDrain, FollowsTheFill) {
  constexpr std::int64_t kOption = 60 * kMs;
  EXPECT_EQ(NextDrainNs(kOption, kWantedFill, kOption), kOption)
      << "a ring that fills steadily is drained steadily";
  EXPECT_EQ(NextDrainNs(kOption, kWantedFill / 1.5, kOption), 90 * kMs);
  EXPECT_EQ(NextDrainNs(kOption, 0, kOption), 2 * kOption);
  EXPECT_EQ(NextDrainNs(kMaxDrainPeriodNs, 0, kOption), kMaxDrainPeriodNs);
  EXPECT_EQ(NextDrainNs(kMaxDrainPeriodNs, 1, kOption), kMaxDrainPeriodNs / 4);
  EXPECT_EQ(NextDrainNs(10 * kMaxDrainPeriodNs, 0, 10 * kMaxDrainPeriodNs), 10 * kMaxDrainPeriodNs);
  EXPECT_EQ(NextDrainNs(kMinDrainPeriodNs, 1, kOption), kMinDrainPeriodNs);
  EXPECT_EQ(NextDrainNs(kMs, 1, kMs), kMs) << "never slower than asked for while rings run full";
}

TEST_F(CollectorTest, EndsAPeriodWhenItIsDueOrAskedFor) {
  Begin();
  ManualClock::Advance(60'000 * kMs);
  EXPECT_TRUE(Eventually([&] { return periods_ == 1; }));
  ASSERT_TRUE(ManualPlatform::Deliver(payload(), 1, 0x400000));
  EXPECT_TRUE(collector_->EndPeriod(In(60)));
  EXPECT_EQ(periods_, 2);
  EXPECT_EQ(counters_.samples, 1u) << "what was captured before is in it";
}

TEST_F(CollectorTest, APeriodThatCannotEndIsSaidSo) {
  refuses_ = true;
  Begin();
  EXPECT_FALSE(collector_->EndPeriod(In(60)));
  EXPECT_EQ(periods_, 1);
  refuses_ = false;
  EXPECT_TRUE(collector_->EndPeriod(In(60)));
}

TEST_F(CollectorTest, LooksAfterTheHandlerOnceASecond) {
  Begin();
  ManualClock::Advance(999 * kMs);
  EXPECT_TRUE(collector_->EndPeriod(In(60)));
  EXPECT_EQ(checks_, 0);
  ManualClock::Advance(kMs);
  EXPECT_TRUE(Eventually([&] { return checks_ == 1; }));
}

TEST_F(CollectorTest, SamplesAThreadThatComesLaterAndIsAtInstants) {
  Begin();
  ManualPlatform::With([](auto& state) { state.refuses_timers = true; });
  RegisteredThread<ManualTraits>* const later =
      *registry_.Register({.id = 2, .stack = {}}, "later");
  session_->Attach(*later);
  ASSERT_TRUE(collector_->EndPeriod(In(60)));  // sees the thread
  ManualPlatform::With([](auto& state) { state.on_cpu.insert(2); });
  ManualClock::Advance(1000 * kMs);
  EXPECT_TRUE(Eventually([] {
    return ManualPlatform::With([](auto& state) { return state.interruptions.size(); }) == 1;
  }));
  session_->Detach(*later);
  registry_.Unregister(later);
}

TEST_F(CollectorTest, AThreadThatIsRefusedIsReported) {
  session_ = std::make_unique<Session<ManualTraits>>(options_, registry_, code_, counters_, 23);
  ManualPlatform::With([](auto& state) { state.threads_left = 0; });
  Collector<ManualTraits> collector(options_, *session_, counters_, {});
  EXPECT_EQ(collector.Begin(), RefusedThread("the collector", EAGAIN));
}

}  // namespace
}  // namespace strobe::internal
