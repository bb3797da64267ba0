// The times of samples, with real threads and signals: each is that of the sample, and their
// amounts add up.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/scoped_labels.h"
#include "strobe/testing/latch.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;

constexpr std::int64_t kMs = 1'000'000;

std::int64_t NowNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// A time in which something was done, by the monotonic clock.
struct Window {
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

// A profile's times are of the day. A reading of that clock lies between them and the monotonic
// clock, so the moments are compared with the windows up to one shift a profile.
class Shift {
 public:
  void Expect(std::int64_t moment_ns, const Window& window) {
    low_ns_ = std::max(low_ns_, moment_ns - window.end_ns);
    high_ns_ = std::min(high_ns_, moment_ns - window.begin_ns);
  }
  [[nodiscard]] bool Exists() const { return low_ns_ <= high_ns_; }

 private:
  std::int64_t low_ns_ = std::numeric_limits<std::int64_t>::min();
  std::int64_t high_ns_ = std::numeric_limits<std::int64_t>::max();
};

// The moments of each row that has a stack add up to the row.
void ExpectWholeRows(const Profile& profile) {
  EXPECT_EQ(testing::CheckProfile(profile), "");
  const std::size_t columns = profile.value_types.size();
  std::vector<std::int64_t> rest = profile.values;
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    for (std::size_t column = 0; column < columns; ++column)
      rest[profile.moments[i].sample * columns + column] -= profile.MomentValues(i)[column];
  }
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::vector<Frame> frames = testing::FramesOf(profile, profile.samples[i]);
    if (frames.size() == 1 && frames[0].is_pseudo()) continue;  // [residual] has no time
    for (std::size_t column = 0; column < columns; ++column)
      EXPECT_EQ(rest[i * columns + column], 0) << "row " << i << ", column " << column;
  }
}

// Whether a profile has a moment in that phase.
auto HasMomentIn(const std::string& phase) {
  return [phase](const KeptProfile& kept) {
    const std::vector<ProfileMoment>& moments = kept.profile.moments;
    return std::any_of(moments.begin(), moments.end(), [&](const ProfileMoment& moment) {
      return kept.profile.Labels(moment.sample).Text("phase") == phase;
    });
  };
}

// Works under the label `phase` until a moment of that has been kept.
void Work(KeepingProfiler& profiler, const std::string& phase) {
  const ScopedLabels labels({{"phase", phase}});
  testing::WorkUntilKept(profiler, HasMomentIn(phase), [] { BurnCpu(20 * kMs); });
}

TEST(Timeline, EachMomentIsThatOfItsSample) {
  KeptProfiles::Take();
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 250, .timestamps = true}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  std::map<std::string, Window> windows;
  std::thread([&] {
    RunRegistered(profiler, "phases", [&] {
      // No label between the phases: where another thread walks a stack that it has copied, the
      // label is read a little later than the stack.
      windows["a"].begin_ns = NowNs();
      Work(profiler, "a");
      BurnCpu(100 * kMs);
      windows["a"].end_ns = windows["b"].begin_ns = NowNs();
      BurnCpu(100 * kMs);
      Work(profiler, "b");
      BurnCpu(100 * kMs);
      windows["b"].end_ns = NowNs();
    });
  }).join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  EXPECT_EQ(profiler.stats().moments_dropped, 0U);
  for (const KeptProfile& one : KeptProfiles::Take()) {
    ExpectWholeRows(one.profile);
    Shift shift;
    for (const ProfileMoment& moment : one.profile.moments) {
      const std::string phase(one.profile.Labels(moment.sample).Text("phase"));
      if (phase.empty()) continue;
      shift.Expect(moment.time_ns, windows.at(phase));
    }
    EXPECT_TRUE(shift.Exists());
  }
}

// Returns when that many more polls have been counted.
void WaitForPolls(KeepingProfiler& profiler, std::uint64_t polls) {
  const std::uint64_t before = profiler.stats().measured_samples;
  WaitUntil([&] { return profiler.stats().measured_samples >= before + polls; });
}

TEST(Timeline, AWaitingThreadsMomentsAreThoseOfItsPolls) {
  KeptProfiles::Take();
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 100, .timestamps = true}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  testing::Latch registered(1);
  testing::Latch is_over(1);
  std::thread waits([&] {
    RunRegistered(profiler, "waits", [&] {
      registered.count_down();
      is_over.wait();
    });
  });
  registered.wait();
  WaitForPolls(profiler, 1);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // apart by that, at least
  WaitForPolls(profiler, 2);  // the second one begins after the first has been counted
  is_over.count_down();
  waits.join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  std::vector<std::int64_t> times;
  for (const KeptProfile& one : KeptProfiles::Take()) {
    ExpectWholeRows(one.profile);
    for (const ProfileMoment& moment : one.profile.moments) times.push_back(moment.time_ns);
  }
  ASSERT_GE(times.size(), 2U);
  EXPECT_GE(times.back() - times.front(), 200 * kMs);
}

TEST(Timeline, AmountsAddUpToTheClocksAllTheSame) {
  KeptProfiles::Take();
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 50, .timestamps = true},
       .exporter = {.period_s = 0.1}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  constexpr int kThreads = 3;
  std::vector<CpuBounds> bounds(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      bounds[static_cast<std::size_t>(i)] = RunRegistered(profiler, "t" + std::to_string(i), [&] {
        for (int round = 0; round < 30; ++round) {
          BurnCpu(10 * kMs);
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(kMs); });
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  std::size_t moments = 0;
  for (const KeptProfile& one : kept) {
    ExpectWholeRows(one.profile);
    moments += one.profile.moments.size();
  }
  EXPECT_GT(moments, 0U);
  auto cpu_ns = SumByName(kept, "cpu");
  for (int i = 0; i < kThreads; ++i) {
    const std::string name = "t" + std::to_string(i);
    EXPECT_GE(cpu_ns[name], bounds[static_cast<std::size_t>(i)].low_ns) << name;
    EXPECT_LE(cpu_ns[name], bounds[static_cast<std::size_t>(i)].high_ns) << name;
  }
}

TEST(Timeline, ARecordingHasMomentsOfItsOwn) {
  KeptProfiles::Take();
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 250, .timestamps = true}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  std::atomic<bool> is_done{false};
  testing::Latch has_begun(1);
  std::thread busy([&] {
    RunRegistered(profiler, "busy", [&] {
      Work(profiler, "before");
      has_begun.count_down();
      while (!is_done) BurnCpu(kMs);
      Work(profiler, "after");
    });
  });
  has_begun.wait();
  absl::StatusOr<Profile> recorded = absl::UnknownError("");
  WaitUntil([&] {
    recorded =
        profiler.Record({.duration = std::chrono::milliseconds(100), .value_types = {"cpu"}});
    return !recorded.ok() || !recorded->moments.empty();
  });
  is_done = true;
  busy.join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  ASSERT_TRUE(recorded.ok()) << recorded.status();
  ExpectWholeRows(*recorded);
  ASSERT_GT(recorded->moments.size(), 0U);
  EXPECT_LE(recorded->moments.back().time_ns, recorded->time_ns + recorded->duration_ns);
  for (const KeptProfile& one : KeptProfiles::Take()) ExpectWholeRows(one.profile);
}

TEST(Timeline, IsKeptOnlyIfItIsAskedFor) {
  KeptProfiles::Take();
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  std::thread([&] {
    RunRegistered(profiler, "busy", [&] {
      WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(kMs); });
    });
  }).join();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  for (const KeptProfile& one : KeptProfiles::Take()) EXPECT_TRUE(one.profile.moments.empty());
}

}  // namespace
}  // namespace strobe
