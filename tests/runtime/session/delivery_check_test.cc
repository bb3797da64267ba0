// Whether samples that are due arrive; integration/hostile_signals has real threads and signals.
#include "strobe/runtime/session/delivery_check.h"

#include <cstdint>
#include <string>
#include <vector>

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr int kFirstSignal = 10;
constexpr int kChosenSignal = 23;

// Threads that block signals, and handlers that are replaced.
struct DeliveryPlatform : testing::ManualPlatform {
  static inline std::uint64_t blocked = 0;
  static inline int installed = 0;
  static int DefaultSignal() { return kChosenSignal; }
  static std::uint64_t BlockedSignals(std::uint64_t /*thread_id*/) { return blocked; }
  static void SetSignalBlocked(int /*signal*/, bool /*is_blocked*/) {}
  static absl::Status InstallHandler(int signal) {
    installed = signal;
    return absl::OkStatus();
  }
};
struct SignalTraits : testing::ManualTraits {
  using Platform = DeliveryPlatform;
};
using Registry = ThreadRegistry<SignalTraits>;

struct CheckedSession {
  using Thread = Registry::Thread;
  [[nodiscard]] int signal() const { return used; }
  void set_signal(int signal) { used = signal; }
  [[nodiscard]] static std::int64_t period_ns() { return 10'000'000; }
  void Reattach(Thread& thread) { reattached.push_back(&thread); }
  int used = kFirstSignal;
  std::vector<Thread*> reattached;
};

class DeliveryCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    DeliveryPlatform::Reset();
    DeliveryPlatform::blocked = 0;
    DeliveryPlatform::installed = 0;
    ASSERT_TRUE(registry_.Open().ok());
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "worker");
    thread_->is_attached = true;
    thread_->timer_kind = TimerKind::kPeriodic;
  }
  void TearDown() override { registry_.Unregister(thread_); }

  // The thread uses more CPU time than goes by without a sample, and the collector checks.
  void CheckAfterWork(bool has_sample) {
    testing::ManualPlatform::RunFor(1, 1'000'000'000);
    if (has_sample) ++thread_->channel->counters.captures;
    check_.Run();
  }
  static std::vector<std::string> Lines() {
    return testing::ManualPlatform::With([](auto& state) { return state.lines; });
  }
  static void Replace() {
    testing::ManualPlatform::With([](auto& state) { state.handler = HandlerState::kReplaced; });
  }

  Registry registry_{100, 32 * 1024};
  CollectorCounters counters_;
  SignalInUse signal_;
  CheckedSession session_;
  DeliveryCheck<SignalTraits, CheckedSession> check_{session_, registry_, counters_, signal_};
  Registry::Thread* thread_ = nullptr;
};

TEST_F(DeliveryCheckTest, SamplesThatComeNeedNothing) {
  Replace();  // by a handler that calls ours
  for (int i = 0; i < 5; ++i) CheckAfterWork(/*has_sample=*/true);
  EXPECT_EQ(Lines().size(), 0u);
  EXPECT_EQ(session_.reattached.size(), 0u);
  EXPECT_FALSE(signal_.is_failing);
}

TEST_F(DeliveryCheckTest, AHandlerThatWasReplacedIsSaidOnceAndThreadsGetAnotherSignal) {
  Replace();
  for (int i = 0; i < 3; ++i) CheckAfterWork(/*has_sample=*/false);
  EXPECT_EQ(DeliveryPlatform::installed, kChosenSignal);
  EXPECT_EQ(session_.signal(), kChosenSignal);
  EXPECT_EQ(signal_.number, kChosenSignal);
  ASSERT_GE(session_.reattached.size(), 1u);
  EXPECT_EQ(session_.reattached[0], thread_);
  ASSERT_GE(Lines().size(), 1u);
  EXPECT_NE(Lines()[0].find("replaced the handler of signal 10"), std::string::npos) << Lines()[0];
  EXPECT_GE(counters_.handler_replaced, 1u);
}

TEST_F(DeliveryCheckTest, AThreadThatBeginsToBlockTheSignalIsAttachedAnew) {
  DeliveryPlatform::blocked = std::uint64_t{1} << (kFirstSignal - 1);
  for (int i = 0; i < 5; ++i) CheckAfterWork(/*has_sample=*/false);
  ASSERT_EQ(session_.reattached.size(), 1u) << "once, when two checks in a row have seen it";
  EXPECT_EQ(thread_->blocked_signals, DeliveryPlatform::blocked);
  EXPECT_FALSE(signal_.is_failing) << "the handler is not at fault";
}

}  // namespace
}  // namespace strobe::internal
