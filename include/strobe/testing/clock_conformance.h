// The contract of a Clock as tests. A clock of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyClock, ClockConformance, MyClock);
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/clock/clock.h"

namespace strobe::testing {

template <Clock C>
class ClockConformance : public ::testing::Test {};
TYPED_TEST_SUITE_P(ClockConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ClockConformance);

// Monotonic time never goes back, even across several clock objects and threads.
TYPED_TEST_P(ClockConformance, MonotonicTimeNeverGoesBack) {
  constexpr int kReads = 2000;
  std::atomic<std::int64_t> latest_ns{TypeParam().MonotonicNs()};
  std::atomic<int> backward{0};
  const auto read = [&] {
    const TypeParam clock{};
    for (int i = 0; i < kReads; ++i) {
      // Another thread read the published time before this read begins.
      const std::int64_t before_ns = latest_ns.load();
      const std::int64_t now_ns = clock.MonotonicNs();
      if (now_ns < before_ns) ++backward;
      std::int64_t seen_ns = latest_ns.load();
      while (seen_ns < now_ns && !latest_ns.compare_exchange_weak(seen_ns, now_ns)) {
      }
    }
  };
  std::array<std::thread, 4> threads;
  for (std::thread& thread : threads) thread = std::thread(read);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(backward, 0);
}

// Neither time is before its epoch, so that differences never overflow.
TYPED_TEST_P(ClockConformance, TimesAreNotNegative) {
  const TypeParam clock{};
  EXPECT_GE(clock.MonotonicNs(), 0);
  EXPECT_GE(clock.UnixTimeNs(), 0);
}

REGISTER_TYPED_TEST_SUITE_P(ClockConformance, MonotonicTimeNeverGoesBack, TimesAreNotNegative);

}  // namespace strobe::testing
