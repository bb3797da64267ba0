#include "strobe/runtime/session/unregistered_check.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using Ids = std::vector<std::uint64_t>;

constexpr std::int64_t kMillisecondNs = 1'000'000;

class UnregisteredCheckTest : public ::testing::Test {
 protected:
  UnregisteredCheckTest() {
    ManualPlatform::Reset();
    ManualPlatform::With([](auto& state) {
      for (std::uint64_t id = 1; id <= 6; ++id)
        state.thread_names[id] = "worker-" + std::to_string(id);
    });
  }
  // A registered thread whose account is settled at once.
  void RunRegistered(std::uint64_t id, std::int64_t cpu_ns) {
    ManualPlatform::RunFor(id, cpu_ns);
    counters_.registered_cpu_ns.fetch_add(cpu_ns);
  }
  static void RunOwn(std::int64_t cpu_ns) {
    ManualPlatform::With([&](auto& state) { state.own_cpu_ns += cpu_ns; });
  }

  CollectorCounters counters_;
};

TEST_F(UnregisteredCheckTest, WhatAllThreadsHaveRegisteredIsNoShare) {
  UnregisteredCheck<ManualPlatform> check(counters_);
  RunRegistered(1, 500 * kMillisecondNs);
  RunOwn(400 * kMillisecondNs);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads());
}

TEST_F(UnregisteredCheckTest, ThoseThatHaveUsedMostAreNamedFirst) {
  UnregisteredCheck<ManualPlatform> check(counters_);
  RunRegistered(1, 100 * kMillisecondNs);
  RunOwn(1000 * kMillisecondNs);
  for (std::uint64_t id = 2; id <= 6; ++id)
    ManualPlatform::RunFor(id, (95 + static_cast<std::int64_t>(id)) * kMillisecondNs);
  const UnregisteredThreads found = check.EndPeriod(Ids{1});
  EXPECT_NEAR(found.share, 495.0 / 595, 1e-9) << "the profiler's own time is no part of it";
  EXPECT_EQ(found.count, 5U);
  EXPECT_EQ(found.names, "worker-6, worker-5, worker-4, ...");
}

TEST_F(UnregisteredCheckTest, EachPeriodCountsItsOwnTime) {
  ManualPlatform::RunFor(2, 10'000 * kMillisecondNs);  // before the session
  UnregisteredCheck<ManualPlatform> check(counters_);
  RunRegistered(1, 100 * kMillisecondNs);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads());
  RunRegistered(1, 100 * kMillisecondNs);
  ManualPlatform::RunFor(2, 300 * kMillisecondNs);
  EXPECT_DOUBLE_EQ(check.EndPeriod(Ids{1}).share, 0.75);
  RunRegistered(1, 100 * kMillisecondNs);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads());
}

TEST_F(UnregisteredCheckTest, ThreadsThatHaveEndedCount) {
  UnregisteredCheck<ManualPlatform> check(counters_);
  RunRegistered(1, 100 * kMillisecondNs);
  ManualPlatform::RunFor(2, 100 * kMillisecondNs);
  ManualPlatform::With([](auto& state) { state.ended.insert(2); });
  EXPECT_EQ(check.EndPeriod(Ids{1}), (UnregisteredThreads{.share = 0.5}));
}

TEST_F(UnregisteredCheckTest, LittleIsNotWorthAWord) {
  UnregisteredCheck<ManualPlatform> check(counters_);
  ManualPlatform::RunFor(2, kLeastUnregisteredNs<ManualPlatform> - 1);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads()) << "all, but of hardly anything";
  RunRegistered(1, 10'000 * kMillisecondNs);
  ManualPlatform::RunFor(2, 1'000 * kMillisecondNs);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads()) << "a tenth of it would be 1.1 s";
}

struct TickingPlatform : ManualPlatform {
  static constexpr bool kHasFineCpuClocks = false;
};

TEST_F(UnregisteredCheckTest, WhatClocksMayBeLateByIsNotWorthAWord) {
  UnregisteredCheck<TickingPlatform> check(counters_);
  ManualPlatform::RunFor(2, kLeastUnregisteredNs<ManualPlatform>);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads());
  ManualPlatform::RunFor(2, kLeastUnregisteredNs<TickingPlatform>);
  EXPECT_DOUBLE_EQ(check.EndPeriod(Ids{1}).share, 1);
}

TEST_F(UnregisteredCheckTest, ThreadsThatLiveAreFoundAtAnyTime) {
  ManualPlatform::RunFor(1, 100 * kMillisecondNs);
  ManualPlatform::RunFor(2, 300 * kMillisecondNs);
  EXPECT_EQ(FindUnregistered<ManualPlatform>(Ids{1}),
            (UnregisteredThreads{.share = 0.75, .count = 1, .names = "worker-2"}));
  EXPECT_EQ(FindUnregistered<ManualPlatform>(Ids{1, 2}), UnregisteredThreads());
}

TEST_F(UnregisteredCheckTest, AThreadWithoutANameHasItsNumber) {
  ManualPlatform::RunFor(77, 100 * kMillisecondNs);
  EXPECT_EQ(FindUnregistered<ManualPlatform>({}).names, "77");
}

struct SilentPlatform : ManualPlatform {
  static std::int64_t ProcessCpuTimeNs() { return -1; }
  static std::vector<ProgramThread> ProgramThreads() { return {}; }
};

TEST_F(UnregisteredCheckTest, ASystemThatDoesNotTellIsNoShare) {
  UnregisteredCheck<SilentPlatform> check(counters_);
  RunRegistered(1, 100 * kMillisecondNs);
  EXPECT_EQ(check.EndPeriod(Ids{1}), UnregisteredThreads());
  EXPECT_EQ(FindUnregistered<SilentPlatform>({}), UnregisteredThreads());
}

}  // namespace
}  // namespace strobe::internal
