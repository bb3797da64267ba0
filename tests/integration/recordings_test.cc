// Recordings on demand beside the continuous export, with real threads: each has what is sampled
// meanwhile, and takes nothing of it away.
#include <atomic>
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

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using std::chrono::milliseconds;
using testing::BurnCpu;
using testing::CheckProfile;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::WaitUntil;
using testing::WorkUntil;
using Recorded = std::future<absl::StatusOr<Profile>>;
using Sums = std::map<std::string, std::int64_t>;

// Records in the background, until the session ends; as soon as there is room.
Recorded RecordToTheEnd(KeepingProfiler& profiler, std::vector<std::string> value_types,
                        double frequency_hz) {
  const RecordingOptions options{.duration = kMaxRecordingDuration,
                                 .value_types = std::move(value_types),
                                 .frequency_hz = frequency_hz};
  return std::async(std::launch::async, [&profiler, options] {
    absl::StatusOr<Profile> profile = absl::ResourceExhaustedError("");
    while (absl::IsResourceExhausted(profile.status())) profile = profiler.Record(options);
    return profile;
  });
}

// Returns when kMaxRecordings others record.
void WaitUntilAllRecord(KeepingProfiler& profiler) {
  absl::Status status;
  WaitUntil([&] {
    status = profiler.Record(milliseconds(1)).status();
    return !status.ok();
  });
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(profiler.Flush().ok());  // the collector has begun those that had been called
}

// What each thread has in that value type, without those that have nothing.
Sums SumsOf(const Profile& profile, std::string_view type) {
  Sums sums = SumByName(std::vector<KeptProfile>{{profile, {}}}, type);
  std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
  return sums;
}
Sums SumsOf(const std::vector<KeptProfile>& kept, std::string_view type) {
  Sums sums = SumByName(kept, type);
  std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
  return sums;
}

std::vector<std::string> TypesOf(const Profile& profile) {
  std::vector<std::string> types;
  for (const ValueType& type : profile.value_types) types.emplace_back(type.type);
  return types;
}

// A registered thread that works until Join.
class BusyThread {
 public:
  explicit BusyThread(KeepingProfiler& profiler)
      : thread_([this, &profiler] {
          RunRegistered(profiler, "thread", [this] {
            while (!is_done_.load()) BurnCpu(1'000'000);
          });
        }) {}
  ~BusyThread() { Join(); }
  BusyThread(const BusyThread&) = delete;
  BusyThread& operator=(const BusyThread&) = delete;

  void Join() {
    is_done_ = true;
    if (thread_.joinable()) thread_.join();
  }

 private:
  std::atomic<bool> is_done_{false};
  std::thread thread_;
};

class Recordings : public ::testing::Test {
 protected:
  void SetUp() override { KeptProfiles::Take(); }
};

// Threads that begin and end while all record, at rates of their own: each recording agrees with
// the exported profiles to the nanosecond, in the columns that it has.
TEST_F(Recordings, SeveralAtOnceHaveWhatTheExportHas) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 50},
                            .exporter = {.period_s = 0.02}});
  ASSERT_TRUE(profiler.Start().ok());
  const std::vector<std::vector<std::string>> wanted{{}, {"cpu"}, {"wall"}, {"wall", "samples"}};
  const std::vector<double> rates_hz{0, 2000, 100, 10};
  ASSERT_EQ(wanted.size(), kMaxRecordings);
  std::vector<Recorded> recorded;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    recorded.push_back(RecordToTheEnd(profiler, wanted[i], rates_hz[i]));
  WaitUntilAllRecord(profiler);
  std::map<std::string, CpuBounds> bounds;
  for (int round = 0; round < 3; ++round) {
    std::vector<CpuBounds> of_round(3);
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < of_round.size(); ++i) {
      threads.emplace_back([&, i] {
        of_round[i] = RunRegistered(profiler, "t" + std::to_string(i), [] { BurnCpu(30'000'000); });
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (std::size_t i = 0; i < of_round.size(); ++i)
      bounds["t" + std::to_string(i)] += of_round[i];
  }
  WaitUntil([&] { return profiler.stats().exports >= 2; });
  ASSERT_TRUE(profiler.Stop().ok());
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  EXPECT_GT(kept.size(), 1u);
  for (const auto& [name, bound] : bounds) {
    EXPECT_GE(SumsOf(kept, "cpu")[name], bound.low_ns);
    EXPECT_LE(SumsOf(kept, "cpu")[name], bound.high_ns);
  }
  const std::vector<std::vector<std::string>> expected{
      {"samples", "cpu", "wall", "off_cpu"}, {"cpu"}, {"wall"}, {"samples", "wall"}};
  const std::vector<std::size_t> shown{1, 0, 0, 0};
  for (std::size_t i = 0; i < recorded.size(); ++i) {
    const absl::StatusOr<Profile> profile = recorded[i].get();
    ASSERT_TRUE(profile.ok()) << profile.status();
    EXPECT_EQ(CheckProfile(*profile), "");
    ASSERT_EQ(TypesOf(*profile), expected[i]);
    EXPECT_EQ(profile->default_value_type, shown[i]);
    for (const std::string& type : expected[i])
      EXPECT_EQ(SumsOf(*profile, type), SumsOf(kept, type)) << type << " of recording " << i;
  }
}

// Recordings that begin and end all the time, and change the rate, under threads that run all the
// time and threads that come and go: the export says what the clocks say.
TEST_F(Recordings, TheExportLosesNothingToThem) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000},
                            .collector = {.drain_period_ms = 5},
                            .exporter = {.period_s = 0.01}});
  ASSERT_TRUE(profiler.Start().ok());
  std::atomic<bool> is_done{false};
  std::vector<std::thread> recorders;
  std::atomic<bool> has_failed{false};
  std::atomic<int> recordings{0};
  std::atomic<int> with_samples{0};
  for (int i = 0; i < static_cast<int>(kMaxRecordings) - 1; ++i) {
    recorders.emplace_back([&, i] {
      while (!is_done.load()) {
        const absl::StatusOr<Profile> profile = profiler.Record(
            {.duration = milliseconds(1 + 7 * i), .frequency_hz = 100 + 1900.0 * i});
        if (!profile.ok()) {
          ADD_FAILURE() << profile.status();
          has_failed = true;
          return;
        }
        EXPECT_EQ(CheckProfile(*profile), "");
        EXPECT_EQ(profile->stats.sums_cut, 0u);
        ++recordings;
        if (!profile->samples.empty()) ++with_samples;
      }
    });
  }
  CpuBounds stays;
  CpuBounds goes;
  std::thread staying([&] {
    stays = RunRegistered(profiler, "stays", [&] {
      WorkUntil(
          [&] {
            return has_failed.load() || (recordings.load() >= 60 && with_samples.load() >= 20);
          },
          [] { BurnCpu(1'000'000); });
    });
    is_done = true;
  });
  std::thread going([&] {
    while (!is_done.load()) goes += RunRegistered(profiler, "goes", [] { BurnCpu(500'000); });
  });
  staying.join();
  going.join();
  for (std::thread& recorder : recorders) recorder.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Sums cpu_ns = SumsOf(KeptProfiles::Take(), "cpu");
  EXPECT_GE(cpu_ns.at("stays"), stays.low_ns);
  EXPECT_LE(cpu_ns.at("stays"), stays.high_ns);
  EXPECT_GE(cpu_ns.at("goes"), goes.low_ns);
  EXPECT_LE(cpu_ns.at("goes"), goes.high_ns);
}

// Whether a profile has more samples of the thread than a timer with a period of a second can have
// brought: one at once, then one a period, which may be shorter by kDither. One more may have been
// captured before the profile's begin, and drained after it.
bool HasMoreThanOneASecond(const Profile& profile) {
  const auto samples = static_cast<double>(SumsOf(profile, "samples")["thread"]);
  const double cpu_s = static_cast<double>(SumsOf(profile, "cpu")["thread"]) / 1e9;
  return samples > 2 + cpu_s / (1 - CpuTimeProvider::kDither);
}

// The program's own rate is one sample a second of CPU time. What rates come of it is proved on
// virtual time: InstantRoundsTest and CpuTimeProviderTest. Here a higher one is seen, and of
// timers, which never come early, none when the rate is the program's again.
TEST_F(Recordings, OneCanAskForAHigherRateWhichIsGivenBack) {
  for (const SampleTrigger trigger : {SampleTrigger::kTimers, SampleTrigger::kRandom}) {
    KeptProfiles::Take();
    KeepingProfiler profiler(
        {.sampling = {.cpu_frequency_hz = 1, .trigger = trigger, .max_overhead = 1}});
    ASSERT_TRUE(profiler.Start().ok());
    std::atomic<bool> is_done{false};
    CpuBounds bounds;
    std::thread thread([&] {
      bounds = RunRegistered(profiler, "thread", [&] {
        while (!is_done.load()) BurnCpu(1'000'000);
        BurnCpu(400'000'000);
      });
    });
    WaitUntil([&] {
      const absl::StatusOr<Profile> profile =
          profiler.Record({.duration = milliseconds(100), .frequency_hz = 200});
      EXPECT_TRUE(profile.ok()) << profile.status();
      if (!profile.ok()) return true;
      EXPECT_EQ(profile->period, 5'000'000);
      EXPECT_EQ(profile->stats.requested_rate_hz, 200);
      return HasMoreThanOneASecond(*profile);
    });
    EXPECT_TRUE(profiler.Flush().ok());
    is_done = true;
    thread.join();
    ASSERT_TRUE(profiler.Stop().ok());
    const std::vector<KeptProfile> kept = KeptProfiles::Take();
    EXPECT_GE(SumsOf(kept, "cpu")["thread"], bounds.low_ns);
    EXPECT_LE(SumsOf(kept, "cpu")["thread"], bounds.high_ns);
    ASSERT_EQ(kept.size(), 2U);
    EXPECT_EQ(kept[1].profile.period, 1'000'000'000);
    if (trigger == SampleTrigger::kTimers) {
      EXPECT_FALSE(HasMoreThanOneASecond(kept[1].profile)) << "the rate is the program's again";
    }
  }
}

// The frames that a thread's stacks share with those before the recording began are in it, too.
TEST_F(Recordings, OneHasWholeStacksFromItsFirstSampleOn) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread thread(profiler);
  std::size_t samples = 0;
  WaitUntil([&] {
    const absl::StatusOr<Profile> profile = profiler.Record(milliseconds(10));
    EXPECT_TRUE(profile.ok()) << profile.status();
    if (!profile.ok()) return true;
    EXPECT_EQ(profile->stats.stacks_overflowed, 0u);
    for (const Frame& frame : profile->frames)
      EXPECT_FALSE(frame.is_pseudo() &&
                   frame.address == static_cast<Address>(PseudoFrame::kOverflow));
    samples += profile->samples.size();
    return samples >= 20;
  });
  thread.Join();
  ASSERT_TRUE(profiler.Stop().ok());
}

// A program names and encodes what it has recorded by the parts that the export uses.
TEST_F(Recordings, OneCanBeNamedAndEncoded) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread thread(profiler);
  absl::StatusOr<Profile> profile = absl::UnknownError("");
  WaitUntil([&] {
    profile = profiler.Record(milliseconds(20));
    return !profile.ok() || !profile->samples.empty();
  });
  thread.Join();
  ASSERT_TRUE(profile.ok()) << profile.status();
  const absl::StatusOr<Symbols> symbols = DefaultTraits::Symbolizer().Symbolize(*profile);
  ASSERT_TRUE(symbols.ok()) << symbols.status();
  const absl::StatusOr<std::string> bytes = PprofEncoder().Encode(*profile, *symbols);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_FALSE(bytes->empty());
  ASSERT_TRUE(profiler.Stop().ok());
}

TEST_F(Recordings, SaysWhatIsWrong) {
  KeepingProfiler profiler;
  EXPECT_TRUE(absl::IsFailedPrecondition(profiler.Record(milliseconds(1)).status()));
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_TRUE(profiler.Record(milliseconds(1)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(profiler.Record(milliseconds(0)).status()));
  EXPECT_TRUE(
      absl::IsInvalidArgument(profiler.Record(kMaxRecordingDuration + milliseconds(1)).status()));
  const absl::Status status =
      profiler.Record({.duration = milliseconds(1), .value_types = {"wall"}}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "value_types: \"wall\" is not enabled; there are samples, cpu");
  EXPECT_TRUE(absl::IsInvalidArgument(
      profiler.Record({.duration = milliseconds(1), .frequency_hz = 1e6}).status()));
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(profiler.Record(milliseconds(1)).status()));
}

TEST_F(Recordings, SaysWhatHasNoRate) {
  KeepingProfiler profiler({.sampling = {.wall_frequency_hz = 1}});
  ASSERT_TRUE(profiler.Start().ok());
  const absl::Status status =
      profiler
          .Record({.duration = milliseconds(1), .value_types = {"off_cpu"}, .frequency_hz = 100})
          .status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
  EXPECT_EQ(status.message(), "frequency_hz: the samples of off_cpu have no rate");
  ASSERT_TRUE(profiler.Stop().ok());
}

// Sessions that end while recordings begin: each call returns, with a profile or the reason.
TEST_F(Recordings, ASessionsEndEndsThem) {
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  std::atomic<bool> is_done{false};
  std::atomic<int> ended{0};
  std::vector<std::thread> recorders;
  for (std::size_t i = 0; i < kMaxRecordings; ++i) {
    recorders.emplace_back([&] {
      while (!is_done.load()) {
        const absl::StatusOr<Profile> profile = profiler.Record(kMaxRecordingDuration);
        if (profile.ok()) ++ended;
        EXPECT_TRUE(profile.ok() || absl::IsFailedPrecondition(profile.status()))
            << profile.status();
      }
    });
  }
  RunRegistered(profiler, "main", [&] {
    WorkUntil([&] { return ended.load() >= (testing::kIsSlow ? 20 : 200); },
              [&, i = 0]() mutable {
                EXPECT_TRUE(profiler.Start().ok());
                if (i++ % 2 == 0) {
                  EXPECT_TRUE(profiler.Flush().ok());
                }
                EXPECT_TRUE(profiler.Stop().ok());
              });
  });
  is_done = true;
  for (std::thread& recorder : recorders) recorder.join();
}

}  // namespace
}  // namespace strobe
