#include "strobe/clock/system_clock.h"

#include <gtest/gtest.h>

#include <ctime>
#include <thread>

#include "strobe/testing/clock_conformance.h"

namespace strobe {
namespace {

TEST(SystemClock, MonotonicTimeNeverGoesBackFromThreadToThread) {
  const SystemClock clock;
  std::int64_t last_ns = clock.MonotonicNs();
  for (int i = 0; i < 100; ++i) {
    std::int64_t there_ns = 0;
    std::thread([&] { there_ns = clock.MonotonicNs(); }).join();
    EXPECT_GE(there_ns, last_ns);
    last_ns = clock.MonotonicNs();
    EXPECT_GE(last_ns, there_ns);
  }
}

TEST(SystemClock, MonotonicTimeIsNanosecondsThatPass) {
  const SystemClock clock;
  const std::int64_t begin_ns = clock.MonotonicNs();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_GE(clock.MonotonicNs() - begin_ns, 20'000'000);
}

TEST(SystemClock, UnixTimeIsTheTimeOfDay) {
  const std::int64_t before_s = std::time(nullptr);
  const std::int64_t now_ns = SystemClock().UnixTimeNs();
  const std::int64_t after_s = std::time(nullptr);
  EXPECT_GE(now_ns / 1'000'000'000, before_s - 1);
  EXPECT_LE(now_ns / 1'000'000'000, after_s + 1);
}

}  // namespace

namespace testing {
INSTANTIATE_TYPED_TEST_SUITE_P(System, ClockConformance, SystemClock);
}  // namespace testing

}  // namespace strobe
