// The list of threads in profiles, with real threads: each registered thread is there, however
// short it was, with its begin, its end and its CPU time.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/testing/latch.h"
#include "strobe/testing/profile_check.h"
#include "support/chance.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::Latch;
using testing::RunRegistered;
using testing::SumByName;
using Sums = std::map<std::string, std::int64_t>;

constexpr std::int64_t kMs = 1'000'000;

// The listings of the threads with that name.
std::vector<ProfileThread> Named(const Profile& profile, std::string_view name) {
  std::vector<ProfileThread> threads;
  for (const ProfileThread& thread : profile.threads) {
    if (thread.name == name) threads.push_back(thread);
  }
  return threads;
}

// Adds what the list says of each thread's CPU time.
void AddListed(const Profile& profile, Sums& sums) {
  for (const ProfileThread& thread : profile.threads) {
    EXPECT_GE(thread.cpu_ns, 0) << thread.name;
    sums[thread.name] += thread.cpu_ns;
  }
}
Sums SumsOfRows(const std::vector<KeptProfile>& kept) { return SumByName(kept, "cpu"); }

// The list agrees with the rows to the nanosecond.
void ExpectListsTheRows(const Profile& profile) {
  EXPECT_EQ(testing::CheckProfile(profile), "");
  Sums listed;
  AddListed(profile, listed);
  Sums rows = SumsOfRows({{profile, {}}});
  for (Sums* sums : {&listed, &rows})
    std::erase_if(*sums, [](const auto& sum) { return sum.second == 0; });
  EXPECT_EQ(listed, rows);
}

std::int64_t EndOf(const Profile& profile) { return profile.time_ns + profile.duration_ns; }

class ThreadList : public ::testing::Test {
 protected:
  void SetUp() override { KeptProfiles::Take(); }
};

TEST_F(ThreadList, HasThreadsOfAMillisecondThatWereNeverSampled) {
  constexpr int kThreads = 20;
  // The first expiry of a timer lies uniformly in its period, a second less kDither at least.
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 1, .trigger = SampleTrigger::kTimers}});
  ASSERT_TRUE(profiler.Start().ok());
  std::map<std::string, CpuBounds> bounds;
  for (int i = 0; i < kThreads; ++i) {
    const std::string name = "short " + std::to_string(i);
    std::thread([&] { bounds[name] = RunRegistered(profiler, name, [] { BurnCpu(kMs); }); }).join();
  }
  ASSERT_TRUE(profiler.Flush().ok());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  ASSERT_TRUE(profiler.Stop().ok());
  ASSERT_EQ(kept.size(), 1u);
  const Profile& profile = kept[0].profile;
  ExpectListsTheRows(profile);
  int sampled = 0;
  std::int64_t longest_ns = 0;
  std::int64_t last_end_ns = profile.time_ns;
  for (int i = 0; i < kThreads; ++i) {
    const std::string name = "short " + std::to_string(i);
    const std::vector<ProfileThread> threads = Named(profile, name);
    ASSERT_EQ(threads.size(), 1u) << name;
    EXPECT_GE(threads[0].begin_ns, last_end_ns) << "one followed the other";
    EXPECT_LT(threads[0].begin_ns, threads[0].end_ns);
    EXPECT_GE(threads[0].cpu_ns, bounds[name].low_ns);
    EXPECT_LE(threads[0].cpu_ns, bounds[name].high_ns);
    last_end_ns = threads[0].end_ns;
    sampled += threads[0].samples == 0 ? 0 : 1;
    longest_ns = std::max(longest_ns, bounds[name].high_ns);
  }
  EXPECT_LE(last_end_ns, EndOf(profile));
  const double chance = static_cast<double>(longest_ns) / 1e9 / (1 - CpuTimeProvider::kDither);
  testing::ExpectWithinChance(sampled,
                              {.least = 0, .most = testing::BinomialBounds(kThreads, chance).most},
                              "sampled threads of a millisecond; the seed is the system's");
  EXPECT_LT(sampled, kThreads);
  EXPECT_EQ(profile.stats.threads_unlisted, 0u);
  for (const KeptProfile& later : KeptProfiles::Take()) EXPECT_TRUE(later.profile.threads.empty());
}

// The thread waits while a period ends, so that each period has one piece of its work.
TEST_F(ThreadList, AThreadOfThreePeriodsIsInEachWithThatPeriodsCpuTime) {
  constexpr std::size_t kPeriods = 3;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  Latch latches[2 * kPeriods]{Latch(1), Latch(1), Latch(1), Latch(1), Latch(1), Latch(1)};
  CpuBounds bounds;
  std::thread thread([&] {
    bounds = RunRegistered(profiler, "long", [&] {
      for (std::size_t i = 0; i < kPeriods; ++i) {
        BurnCpu(20 * kMs);
        latches[2 * i].count_down();
        latches[2 * i + 1].wait();
      }
    });
  });
  std::vector<Profile> profiles;
  for (std::size_t i = 0; i < kPeriods; ++i) {
    latches[2 * i].wait();
    if (i + 1 < kPeriods) {
      EXPECT_TRUE(profiler.Flush().ok());
    }
    latches[2 * i + 1].count_down();
  }
  thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  for (KeptProfile& kept : KeptProfiles::Take()) profiles.push_back(std::move(kept.profile));
  ASSERT_EQ(profiles.size(), kPeriods);
  std::int64_t sum_ns = 0;
  for (std::size_t i = 0; i < kPeriods; ++i) {
    ExpectListsTheRows(profiles[i]);
    const std::vector<ProfileThread> threads = Named(profiles[i], "long");
    ASSERT_EQ(threads.size(), 1u);
    EXPECT_GE(threads[0].cpu_ns, 20 * kMs) << "period " << i;
    sum_ns += threads[0].cpu_ns;
    EXPECT_EQ(threads[0].begin_ns >= profiles[i].time_ns, i == 0);
    EXPECT_EQ(threads[0].end_ns != 0, i + 1 == kPeriods);
  }
  EXPECT_GE(sum_ns, bounds.low_ns);
  EXPECT_LE(sum_ns, bounds.high_ns);
  const ProfileThread last = Named(profiles.back(), "long")[0];
  EXPECT_GE(last.end_ns, profiles.back().time_ns);
  EXPECT_LE(last.end_ns, EndOf(profiles.back()));
}

// Recordings of any columns list the threads that the exported periods list together.
TEST_F(ThreadList, RecordingsHaveTheSameLives) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 50},
                            .exporter = {.period_s = 0.02}});
  ASSERT_TRUE(profiler.Start().ok());
  std::vector<std::future<absl::StatusOr<Profile>>> recorded;
  for (const char* type : {"cpu", "wall", "samples", "off_cpu"}) {
    recorded.push_back(std::async(std::launch::async, [&profiler, type] {
      absl::StatusOr<Profile> profile = absl::ResourceExhaustedError("");
      while (absl::IsResourceExhausted(profile.status()))
        profile = profiler.Record({.duration = kMaxRecordingDuration, .value_types = {type}});
      return profile;
    }));
  }
  ASSERT_EQ(recorded.size(), kMaxRecordings);
  // While one of them has no place yet, there is room for this.
  testing::WaitUntil([&] {
    return absl::IsResourceExhausted(profiler.Record(std::chrono::milliseconds(1)).status());
  });
  ASSERT_TRUE(profiler.Flush().ok());  // the collector has begun them
  std::map<std::string, CpuBounds> bounds;
  for (int round = 0; round < 5; ++round) {
    std::vector<CpuBounds> of_round(2);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < of_round.size(); ++i) {
      threads.emplace_back([&, i] {
        of_round[i] = RunRegistered(profiler, "t" + std::to_string(i), [] { BurnCpu(10 * kMs); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < of_round.size(); ++i)
      bounds["t" + std::to_string(i)] += of_round[i];
  }
  ASSERT_TRUE(profiler.Stop().ok());
  Sums exported;
  for (const KeptProfile& kept : KeptProfiles::Take()) {
    ExpectListsTheRows(kept.profile);
    AddListed(kept.profile, exported);
  }
  for (const auto& [name, bound] : bounds) {
    EXPECT_GE(exported[name], bound.low_ns);
    EXPECT_LE(exported[name], bound.high_ns);
  }
  for (auto& future : recorded) {
    const absl::StatusOr<Profile> profile = future.get();
    ASSERT_TRUE(profile.ok()) << profile.status();
    Sums listed;
    AddListed(*profile, listed);
    EXPECT_EQ(listed, exported);
    EXPECT_EQ(Named(*profile, "t0").size(), 5u) << "each registration has a life of its own";
    for (const ProfileThread& thread : profile->threads) {
      EXPECT_GE(thread.begin_ns, profile->time_ns);
      EXPECT_LT(thread.begin_ns, thread.end_ns);
      EXPECT_LE(thread.end_ns, EndOf(*profile));
    }
  }
}

TEST_F(ThreadList, KnowsTheCpuTimeWithoutCpuSampling) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 1}});
  CpuBounds bounds;
  Latch registered(1);
  Latch started(1);
  std::thread thread([&] {
    bounds = RunRegistered(profiler, "early", [&] {
      registered.count_down();
      started.wait();
      BurnCpu(5 * kMs);
    });
  });
  registered.wait();
  ASSERT_TRUE(profiler.Start().ok());
  started.count_down();
  thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  ASSERT_EQ(kept.size(), 1u);
  const std::vector<ProfileThread> threads = Named(kept[0].profile, "early");
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_LT(threads[0].begin_ns, kept[0].profile.time_ns) << "it registered before the session";
  EXPECT_GE(threads[0].end_ns, kept[0].profile.time_ns);
  EXPECT_GE(threads[0].cpu_ns, 5 * kMs);
  EXPECT_LE(threads[0].cpu_ns, bounds.high_ns);
}

TEST_F(ThreadList, CountsTheThreadsThatItHasNoRoomFor) {
  constexpr std::size_t kThreads = 1'000;
  KeepingProfiler profiler({.collector = {.memory_bytes = 1 << 20}});
  ASSERT_TRUE(profiler.Start().ok());
  CpuBounds bounds;
  for (std::size_t i = 0; i < kThreads; ++i)
    std::thread([&] { bounds += RunRegistered(profiler, "t", [] {}); }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  ASSERT_EQ(kept.size(), 1u);
  std::size_t listed = 0;
  for (const ProfileThread& thread : kept[0].profile.threads) listed += thread.end_ns != 0 ? 1 : 0;
  const std::uint64_t unlisted = kept[0].profile.stats.threads_unlisted;
  EXPECT_GT(listed, 0u);
  EXPECT_GT(unlisted, 0u);
  EXPECT_EQ(listed + unlisted, kThreads);
  EXPECT_EQ(profiler.stats().threads_unlisted, unlisted);
  Sums rows = SumsOfRows(kept);
  EXPECT_GE(rows["t"], bounds.low_ns) << "amounts are there all the same";
  EXPECT_LE(rows["t"], bounds.high_ns);
}

}  // namespace
}  // namespace strobe
