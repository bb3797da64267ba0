#include "strobe/runtime/sleepers.h"

#include <array>
#include <cstdint>
#include <numeric>
#include <span>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;

constexpr std::int64_t kMaxNs = 5'000'000;
constexpr std::uint64_t kCollector = 1;
constexpr int kStillLooks = Sleepers<ManualPlatform>::kStillLooks;

class SleepersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualPlatform::ActAs(kCollector);
  }
  void TearDown() override { ManualPlatform::ActAs(0); }

  // The slot `index`, whose thread has the same number.
  void LookAt(std::uint32_t index, std::int64_t attach_cpu_ns = 0) {
    sleepers_.Note(index, attach_cpu_ns, ManualPlatform::ThreadCpuTimeNs(index));
  }
  // How many of three sleepers were looked at in a round, after the looks at those that are awake.
  template <class LookAtAwake = void (*)()>
  int Round(LookAtAwake look_at_awake = [] {}) {
    sleepers_.BeginRound();
    look_at_awake();
    std::array<int, 3> sleepers{};
    const std::array<int*, 3> pointers{&sleepers[0], &sleepers[1], &sleepers[2]};
    sleepers_.EndRound(std::span<int* const>(pointers), kMaxNs, [](int& sleeper) { ++sleeper; });
    for (const int looks : sleepers) EXPECT_LE(looks, 1);
    EXPECT_EQ(sleepers[0], 1)
        << "a clock that is not what it should be must not hide a thread for ever";
    return std::accumulate(sleepers.begin(), sleepers.end(), 0);
  }

  Sleepers<ManualPlatform> sleepers_;
};

TEST_F(SleepersTest, AThreadSleepsOnceItsClockHasStoodStillForSomeLooks) {
  for (int i = 0; i < kStillLooks; ++i) {
    EXPECT_FALSE(sleepers_.IsAsleep(2));
    LookAt(2);
  }
  EXPECT_FALSE(sleepers_.IsAsleep(1)) << "another thread";
  EXPECT_FALSE(sleepers_.IsAsleep(3));
  for (int i = 0; i < 1000; ++i) {
    LookAt(2);
    EXPECT_TRUE(sleepers_.IsAsleep(2));
  }
  ManualPlatform::RunFor(2, 1);
  LookAt(2);
  EXPECT_FALSE(sleepers_.IsAsleep(2));
  for (int i = 0; i < kStillLooks; ++i) LookAt(2);
  EXPECT_TRUE(sleepers_.IsAsleep(2));
  sleepers_.Forget(2);
  EXPECT_FALSE(sleepers_.IsAsleep(2)) << "a registration begins awake";
  for (int i = 0; i < 2 * kStillLooks; ++i) sleepers_.Note(3, 0, -1);
  EXPECT_FALSE(sleepers_.IsAsleep(3)) << "not known";
}

TEST_F(SleepersTest, SleepersAreLookedAtOnceSomebodyElseHasRunForSoLong) {
  EXPECT_EQ(Round(), 1);
  ManualPlatform::RunFor(3, kMaxNs);
  EXPECT_EQ(Round(), 1);
  ManualPlatform::RunFor(4, 1);
  EXPECT_EQ(Round(), 3) << "the two together";
  EXPECT_EQ(Round(), 1) << "that was then";
}

TEST_F(SleepersTest, WhatTheCollectorAndTheAwakeUseIsNobodyElses) {
  for (int i = 0; i < 100; ++i) {
    ManualPlatform::RunFor(kCollector, 10 * kMaxNs);
    ManualPlatform::RunFor(2, 20 * kMaxNs);
    EXPECT_EQ(Round([&] { LookAt(2); }), 1);
  }
}

TEST_F(SleepersTest, WhatTheAwakeUseAfterTheirLooksHidesNobody) {
  ManualPlatform::RunFor(3, kMaxNs + 1);
  EXPECT_EQ(Round([&] {
              LookAt(2);
              ManualPlatform::RunFor(2, 100 * kMaxNs);
            }),
            3);
  ManualPlatform::RunFor(3, kMaxNs + 1);
  EXPECT_EQ(Round([&] { LookAt(2); }), 3);
}

TEST_F(SleepersTest, WhatTheSleepersUsedIsSeenOnce) {
  ManualPlatform::RunFor(2, kMaxNs + 1);
  int sleeper = 0;
  int* const pointer = &sleeper;
  int looks = 0;
  sleepers_.BeginRound();
  sleepers_.EndRound(std::span<int* const>(&pointer, 1), kMaxNs, [&](int& /*sleeper*/) {
    LookAt(2);
    ++looks;
  });
  EXPECT_EQ(looks, 1);
  ManualPlatform::RunFor(2, kMaxNs + 1);
  EXPECT_EQ(Round(), 3) << "nor does it hide what comes later";
}

TEST_F(SleepersTest, WhatAThreadUsedBeforeItWasAttachedIsNotItsOwn) {
  ManualPlatform::RunFor(2, kMaxNs + 1);
  EXPECT_EQ(Round([&] { LookAt(2, kMaxNs + 1); }), 3);
}

struct NoProcessClock : ManualPlatform {
  static std::int64_t ProcessCpuTimeNs() { return -1; }
};
TEST(Sleepers, WithoutAClockOfTheProcessAllAreLookedAt) {
  Sleepers<NoProcessClock> sleepers;
  std::array<int, 2> looks{};
  const std::array<int*, 2> pointers{&looks[0], &looks[1]};
  for (int i = 0; i < 10; ++i)
    sleepers.EndRound(std::span<int* const>(pointers), kMaxNs, [](int& sleeper) { ++sleeper; });
  EXPECT_THAT(looks, ::testing::Each(10));
}

}  // namespace
}  // namespace strobe::internal
