// Two profilers in one process: of different parts, on different signals or on the same one, over
// the same threads.
#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::CpuOnlyTraits;
using testing::KeepingTraits;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::SumByName;
using testing::ThreadCpuNs;
using testing::WorkUntil;

// The profiles of the profiler that samples at `period_ns`.
std::vector<KeptProfile> OfPeriod(const std::vector<KeptProfile>& kept, std::int64_t period_ns) {
  std::vector<KeptProfile> result;
  for (const KeptProfile& one : kept) {
    if (one.profile.period == period_ns) result.push_back(one);
  }
  return result;
}

constexpr std::int64_t kProfilingSignal = 27;  // SIGPROF, where there are signals

class TwoProfilers : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(TwoProfilers, EachHasTheWholeTruth) {
  KeptProfiles::Take();
  BasicProfiler<KeepingTraits> one(
      {.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 50}});
  BasicProfiler<CpuOnlyTraits> other(
      {.sampling = {.cpu_frequency_hz = 500, .signal_number = GetParam()}});
  ASSERT_TRUE(one.Start().ok());
  ASSERT_TRUE(other.Start().ok());
  const std::int64_t before_ns = ThreadCpuNs();
  auto with_one = std::optional(one.RegisterThread("both"));
  auto with_other = std::optional(other.RegisterThread("both"));
  ASSERT_TRUE(with_one->status().ok());
  ASSERT_TRUE(with_other->status().ok());
  const std::int64_t begin_ns = ThreadCpuNs();
  BurnCpu(100'000'000);
  WorkUntil([&] { return one.stats().samples > 0 && other.stats().samples > 0; },
            [] { BurnCpu(1'000'000); });
  const std::int64_t end_ns = ThreadCpuNs();
  // Not in the reverse order: registrations need not nest.
  with_one.reset();
  const std::int64_t one_ended_ns = ThreadCpuNs();
  BurnCpu(50'000'000);
  const std::int64_t other_end_ns = ThreadCpuNs();
  with_other.reset();
  const std::int64_t after_ns = ThreadCpuNs();
  ASSERT_TRUE(one.Stop().ok());
  ASSERT_TRUE(other.Stop().ok());
  const auto kept = KeptProfiles::Take();
  const std::int64_t of_one_ns = SumByName(OfPeriod(kept, 1'000'000), "cpu")["both"];
  const std::int64_t of_other_ns = SumByName(OfPeriod(kept, 2'000'000), "cpu")["both"];
  EXPECT_GE(of_one_ns, end_ns - begin_ns);
  EXPECT_LE(of_one_ns, one_ended_ns - before_ns);
  EXPECT_GE(of_other_ns, other_end_ns - begin_ns);
  EXPECT_LE(of_other_ns, after_ns - before_ns);
}

INSTANTIATE_TEST_SUITE_P(Signals, TwoProfilers, ::testing::Values(0, kProfilingSignal),
                         [](const auto& info) {
                           return info.param == 0 ? "TheSame" : "Different";
                         });

// An arena is used again by a later profiler of the same parts; what an earlier one left behind
// must not disturb it.
TEST(TwoProfilersInTurn, ManyLiveOneAfterAnother) {
  constexpr int kProfilers = testing::kIsSanitized ? 10 : 100;
  for (int i = 0; i < kProfilers; ++i) {
    KeptProfiles::Take();
    BasicProfiler<KeepingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000},
                                           .threads = {.ring_bytes = i % 2 == 0 ? 16384 : 32768}});
    ASSERT_TRUE(profiler.Start().ok());
    const CpuBounds bounds = testing::RunRegistered(profiler, "turn", [] { BurnCpu(2'000'000); });
    ASSERT_TRUE(profiler.Stop().ok());
    auto cpu_ns = SumByName(KeptProfiles::Take(), "cpu");
    ASSERT_GE(cpu_ns["turn"], bounds.low_ns);
    ASSERT_LE(cpu_ns["turn"], bounds.high_ns);
  }
}

}  // namespace
}  // namespace strobe
