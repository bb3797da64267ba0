// What a thread's own registration does about its mask; integration/hostile_signals has the whole.
#include "strobe/runtime/threads/signal_mask.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr int kChosen = 23;

struct FakePlatform {
  static inline std::uint64_t blocked = 0;
  static int DefaultSignal() { return kChosen; }
  static std::uint64_t BlockedSignals(std::uint64_t /*thread_id*/) { return blocked; }
  static void SetSignalBlocked(int signal, bool is_blocked) {
    const std::uint64_t bit = BitOf(signal);
    blocked = is_blocked ? blocked | bit : blocked & ~bit;
  }
};
struct FakeThread {
  [[nodiscard]] static std::uint64_t thread_id() { return 1; }
  std::uint64_t blocked_signals = 0;
  std::uint8_t unblocked_signal = 0;
};

TEST(SignalInUse, IsTheOneAskedForOrThePlatformsChoice) {
  EXPECT_EQ(SignalInUse{.requested = 10}.Wanted<FakePlatform>(), 10);
  EXPECT_EQ(SignalInUse{}.Wanted<FakePlatform>(), kChosen);
}

TEST(CheckMask, LetsOnlyOurSignalThroughAndOnlyWhereItMay) {
  for (const int in_use : {0, 12}) {
    SignalInUse signal;
    signal.number = in_use;
    const int ours = in_use == 0 ? kChosen : in_use;
    FakePlatform::blocked = ~std::uint64_t{0};
    FakeThread thread;
    CheckMask<FakePlatform>(thread, signal, /*may_unblock=*/false);
    EXPECT_TRUE(HasSignal(thread.blocked_signals, ours));
    EXPECT_EQ(FakePlatform::blocked, ~std::uint64_t{0});
    CheckMask<FakePlatform>(thread, signal, /*may_unblock=*/true);
    EXPECT_EQ(thread.blocked_signals, ~(std::uint64_t{1} << (ours - 1)));
    EXPECT_EQ(FakePlatform::blocked, thread.blocked_signals);
    RestoreMask<FakePlatform>(thread);
    EXPECT_EQ(FakePlatform::blocked, ~std::uint64_t{0});
    EXPECT_EQ(thread.unblocked_signal, 0);
  }
}

TEST(CheckMask, LeavesAThreadAloneThatDoesNotBlockOurs) {
  FakePlatform::blocked = 1;
  FakeThread thread;
  CheckMask<FakePlatform>(thread, SignalInUse{}, /*may_unblock=*/true);
  EXPECT_EQ(FakePlatform::blocked, 1u);
  RestoreMask<FakePlatform>(thread);
  EXPECT_EQ(FakePlatform::blocked, 1u);
}

}  // namespace
}  // namespace strobe::internal
