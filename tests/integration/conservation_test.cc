// The profile adds up: per thread and provider, exported values are what the clock says. Each
// expectation is a bracket of two readings of that clock around the registration and two within it,
// so it holds on any machine, however busy.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collecting_exporter.h"
#include "strobe/platform/native.h"
#include "strobe/testing/latch.h"
#include "support/chance.h"
#include "support/until_seen.h"

// The bounds of code put into a section by that name.
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" const char __start_after_drain[], __stop_after_drain[];
extern "C" const char __start_one_side[], __stop_one_side[];
extern "C" const char __start_other_side[], __stop_other_side[];
// NOLINTEND(bugprone-reserved-identifier)

namespace strobe::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;

using Exports = std::vector<CollectingExporter::Exported>;

bool IsIn(const Frame& frame, const char* start, const char* stop) {
  return !frame.is_pseudo() && frame.address >= reinterpret_cast<Address>(start) &&
         frame.address < reinterpret_cast<Address>(stop);
}

// The samples of a period have all of the thread's time: no [residual] is left. Only off-CPU time
// may be one: a thread that has waited for a CPU may never have been found waiting.
void ExpectNoResidual(const Exports& exports, const std::string& thread) {
  for (const auto& exported : exports) {
    if (SumOfThread({exported}, "samples", thread) == 0) continue;
    const Profile& profile = exported.profile;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      if (profile.Labels(i).Text(kThreadNameLabel) != thread ||
          !HasPseudoFrame(profile, profile.samples[i], PseudoFrame::kResidual))
        continue;
      for (std::size_t type = 0; type < profile.value_types.size(); ++type) {
        const bool is_off_cpu = profile.value_types[type].type == "off_cpu";
        EXPECT_TRUE(is_off_cpu || profile.Values(i)[type] == 0);
      }
    }
  }
}

class Conservation : public ::testing::Test {
 protected:
  void SetUp() override { CollectingExporter::Take(); }
};

TEST_F(Conservation, ThreadsThatCameBeforeAndAfterStart) {
  BasicProfiler<CollectingTraits> profiler;
  Latch registered(1);
  Latch started(1);
  Span early_cpu;  // sampled from Start, not from its registration
  std::thread early([&] {
    const Registration registration = profiler.RegisterThread("early");
    registered.count_down();
    BurnCpu(10 * kMs);
    started.wait();
    const std::int64_t inner = ThreadCpuNs();
    BurnCpu(150 * kMs);
    early_cpu.least = ThreadCpuNs() - inner;
  });
  registered.wait();
  ASSERT_TRUE(profiler.Start().ok());
  started.count_down();
  Brackets late;
  std::thread([&] { late = RunBracketed(profiler, "late", [] { BurnCpu(150 * kMs); }); }).join();
  early.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  ExpectWithin(exports, "cpu", "late", late.cpu);
  EXPECT_GE(SumOfThread(exports, "cpu", "early"), early_cpu.least);
  ExpectNoResidual(exports, "late");
  ExpectNoResidual(exports, "early");
}

// Each thread alone would have a sample in a fifth of the cases, and else be all residual.
TEST_F(Conservation, ShortThreadsOfOneNameShareTheirSamples) {
  BasicProfiler<CollectingTraits> profiler;
  ASSERT_TRUE(profiler.Start().ok());
  Span cpu;
  for (int i = 0; i < 200; ++i) {
    Brackets one;
    std::thread([&] { one = RunBracketed(profiler, "task", [] { BurnCpu(2 * kMs); }); }).join();
    cpu.least += one.cpu.least;
    cpu.most += one.cpu.most;
  }
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  ExpectWithin(exports, "cpu", "task", cpu);
  EXPECT_GT(SumOfThread(exports, "samples", "task"), 0);
  ExpectNoResidual(exports, "task");
}

TEST_F(Conservation, CpuAndWallTogether) {
  BasicProfiler<CollectingTraits> profiler({.sampling = {.wall_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  Brackets busy;
  Brackets waiting;
  Brackets mixed;
  Latch end(1);
  std::thread waiter([&] { waiting = RunBracketed(profiler, "waiting", [&] { end.wait(); }); });
  std::thread mixer([&] {
    mixed = RunBracketed(profiler, "mixed", [] {
      for (int i = 0; i < 30; ++i) {
        BurnCpu(3 * kMs);
        std::this_thread::sleep_for(
            std::chrono::milliseconds(3));  // some waiting to be seen; nothing depends on how much
      }
    });
  });
  std::thread([&] { busy = RunBracketed(profiler, "busy", [] { BurnCpu(300 * kMs); }); }).join();
  mixer.join();
  end.count_down();
  waiter.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  const std::vector<ValueType> types{{"samples", "count"},
                                     {"cpu", "nanoseconds"},
                                     {"wall", "nanoseconds"},
                                     {"off_cpu", "nanoseconds"}};
  EXPECT_EQ(exports[0].profile.value_types, types);
  for (const auto& [name, brackets] :
       {std::pair("busy", busy), std::pair("waiting", waiting), std::pair("mixed", mixed)}) {
    ExpectWithin(exports, "cpu", name, brackets.cpu);
    ExpectWithin(exports, "wall", name, brackets.wall);
    ExpectNoResidual(exports, name);
  }
}

// The kernel's tick on most systems. Timers that expire on it interrupt a thread twice within that
// time at most.
constexpr std::int64_t kTickNs = 4 * kMs;
bool HasThreeSamplesWithinATick(const CollectingExporter::Exported& exported) {
  const std::vector<ProfileMoment>& moments = exported.profile.moments;
  for (std::size_t i = 2; i < moments.size(); ++i) {
    if (moments[i].time_ns - moments[i - 2].time_ns < kTickNs) return true;
  }
  return false;
}

// Works on the only registered thread, in step with nothing, until it has been seen that samples
// come faster than the tick.
void WorkUntilFasterThanTheTick(BasicProfiler<CollectingTraits>& profiler) {
  WorkUntil([&] { return CollectingExporter::HasProfile(HasThreeSamplesWithinATick); },
            [&] {
              BurnCpu(100 * kMs);
              EXPECT_TRUE(profiler.Flush().ok());
            });
}

TEST_F(Conservation, FrequencyAboveTheKernelTick) {
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 1000, .max_overhead = 1, .timestamps = true}});
  ASSERT_TRUE(profiler.Start().ok());
  Brackets fast;
  std::thread([&] {
    fast = RunBracketed(profiler, "fast", [&] {
      BurnCpu(600 * kMs);
      // Where clocks are coarse, stopping a thread may take longer than a period.
      if (kSignalsAreLate || !NativePlatform::kHasFineCpuClocks) return;
      WorkUntilFasterThanTheTick(profiler);
    });
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectWithin(exports, "cpu", "fast", fast.cpu);
  ExpectNoResidual(exports, "fast");
  const std::int64_t samples = SumOfThread(exports, "samples", "fast");
  EXPECT_EQ(samples, static_cast<std::int64_t>(profiler.stats().samples));
}

TEST_F(Conservation, RandomInstants) {
  BasicProfiler<CollectingTraits> profiler({.sampling = {.trigger = SampleTrigger::kRandom}});
  ASSERT_TRUE(profiler.Start().ok());
  Brackets looked_at;
  std::thread([&] {
    looked_at = RunBracketed(profiler, "looked at", [] { BurnCpu(300 * kMs); });
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectWithin(exports, "cpu", "looked at", looked_at.cpu);
  ExpectNoResidual(exports, "looked at");
}

// The times between two expiries are drawn with a mean of a millisecond, and are longer by what the
// system takes to deliver one and the handler to set the next. So a thread that ran all the time
// would have no more samples than a Poisson process of that mean.
TEST_F(Conservation, RandomTimers) {
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {
           .cpu_frequency_hz = 1000, .trigger = SampleTrigger::kPerf, .timestamps = true}});
  ASSERT_TRUE(profiler.Start().ok());
  Brackets timed;
  std::uint64_t on_random_timers = 0;
  std::thread([&] {
    timed = RunBracketed(profiler, "timed", [&] {
      on_random_timers = profiler.stats().threads_on_random_timers;
      BurnCpu(600 * kMs);
      if (on_random_timers != 0 && !kSignalsAreLate) WorkUntilFasterThanTheTick(profiler);
    });
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectWithin(exports, "cpu", "timed", timed.cpu);
  ExpectNoResidual(exports, "timed");
  if (on_random_timers == 0) GTEST_SKIP() << "the system allows no random timers";
  const double mean = static_cast<double>(timed.wall.most) / static_cast<double>(kMs);
  ExpectWithinChance(static_cast<double>(SumOfThread(exports, "samples", "timed")),
                     {.least = 1, .most = PoissonBounds(mean).most},
                     "samples by a random timer whose seed is the system's");
}

TEST_F(Conservation, ThreadsShorterThanAPeriod) {
  constexpr int kThreads = 200;
  BasicProfiler<CollectingTraits> profiler({.sampling = {.wall_frequency_hz = 50}});
  ASSERT_TRUE(profiler.Start().ok());
  std::vector<Brackets> brackets(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    std::thread([&] {
      brackets[i] = RunBracketed(profiler, absl::StrCat("short ", i), [] { BurnCpu(1 * kMs); });
    }).join();
  }
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  for (int i = 0; i < kThreads; ++i) {
    ExpectWithin(exports, "cpu", absl::StrCat("short ", i), brackets[i].cpu);
    ExpectWithin(exports, "wall", absl::StrCat("short ", i), brackets[i].wall);
  }
}

TEST_F(Conservation, StopWhileThreadsRun) {
  BasicProfiler<CollectingTraits> profiler;
  std::atomic<bool> is_done{false};
  Latch registered(3);
  std::vector<std::thread> threads;
  std::vector<ThreadClock> clocks(3);
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const Registration registration = profiler.RegisterThread(absl::StrCat("running ", i));
      clocks[i] = ClockOfThisThread();
      registered.count_down();
      while (!is_done.load()) BurnCpu(kMs);
    });
  }
  registered.wait();
  const auto read = [&] {
    std::vector<std::int64_t> times;
    for (const ThreadClock clock : clocks) times.push_back(ReadNs(clock));
    return times;
  };
  // Twice: the second session begins where the first one's timers and rings have been. A thread
  // that the system has taken off its CPU in the middle of a capture is attached when it goes on.
  const auto are_all_attached = [&] {
    EXPECT_TRUE(profiler.Flush().ok());
    return CollectingExporter::HasProfile(
        [](const auto& exported) { return exported.profile.threads.size() == 3; });
  };
  for (int session = 0; session < 2; ++session) {
    const auto before_start = read();
    ASSERT_TRUE(profiler.Start().ok());
    ASSERT_TRUE(WaitUntil(are_all_attached));
    const auto attached = read();
    BurnCpu(100 * kMs);
    const auto before_stop = read();
    ASSERT_TRUE(profiler.Stop().ok());
    const auto after_stop = read();
    const Exports exports = CollectingExporter::Take();
    for (std::size_t i = 0; i < 3; ++i) {
      const Span span{.least = before_stop[i] - attached[i],
                      .most = after_stop[i] - before_start[i]};
      ExpectWithin(exports, "cpu", absl::StrCat("running ", i), span);
    }
  }
  is_done = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(Conservation, FlushesAddUp) {
  BasicProfiler<CollectingTraits> profiler({.sampling = {.wall_frequency_hz = 50}});
  const std::int64_t outer_ns = MonotonicNs();
  ASSERT_TRUE(profiler.Start().ok());
  const std::int64_t inner_ns = MonotonicNs();
  const Brackets flushing = RunBracketed(profiler, "flushing", [&] {
    for (int i = 0; i < 4; ++i) {
      BurnCpu(60 * kMs);
      EXPECT_TRUE(profiler.Flush().ok());
    }
  });
  const Span session{.least = MonotonicNs() - inner_ns};
  ASSERT_TRUE(profiler.Stop().ok());
  const std::int64_t most_ns = MonotonicNs() - outer_ns;
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 5U);
  std::int64_t duration_ns = 0;
  std::uint64_t samples = 0;
  for (std::size_t i = 0; i < exports.size(); ++i) {
    EXPECT_EQ(exports[i].profile.sequence, i);
    duration_ns += exports[i].profile.duration_ns;
    samples += exports[i].profile.stats.samples;
  }
  ExpectWithin(exports, "cpu", "flushing", flushing.cpu);
  ExpectWithin(exports, "wall", "flushing", flushing.wall);
  // The periods follow on one another without a gap.
  EXPECT_GE(duration_ns, session.least);
  EXPECT_LE(duration_ns, most_ns);
  EXPECT_EQ(samples, profiler.stats().samples);
}

// A stack of `depth` frames and more above `body`.
__attribute__((noinline)) void Deeply(int depth, const std::function<void()>& body) {
  if (depth == 0) {
    body();
  } else {
    Deeply(depth - 1, body);
  }
  asm volatile("");  // so that the call above is none in tail position
}
// Code that its samples are known by. What it calls is in their stacks, too.
__attribute__((noinline, section("after_drain"))) void AfterDrain(
    const std::function<void()>& body) {
  body();
  asm volatile("");
}

// Two records of 240 frames fill the ring. What does not fit is divided among the thread's other
// samples, or is [residual], and here it is all there.
TEST_F(Conservation, TinyRingLosesNoWeight) {
  constexpr std::int64_t kFrames = 240;
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000,
                                                         .max_frames = kFrames,
                                                         .trigger = SampleTrigger::kTimers},
                                            .threads = {.ring_bytes = 4096},
                                            .collector = {.drain_period_ms = 10000}});
  const auto drain = [&] {
    // The period goes on.
    EXPECT_TRUE(profiler.Record(std::chrono::milliseconds(1)).ok());
  };
  const auto drops = [&] {
    return profiler.stats().drops[static_cast<std::size_t>(DropReason::kRingFull)];
  };
  // ThreadSanitizer changes how many signals come, and with which stack.
  const auto fill = [&](std::int64_t least_ns) {
    const std::uint64_t before = drops();
    Deeply(kFrames + 10, [&] { BurnCpu(least_ns); });
    if (kSignalsAreLate) return;
    // A walk without the tables of its code has more to record, and fills the ring otherwise.
    WorkUntil([&] { return drops() > before; },
              [&] {
                drain();
                Deeply(kFrames + 10, [] { BurnCpu(50 * kMs); });
              });
  };
  ASSERT_TRUE(profiler.Start().ok());
  const Brackets divided = RunBracketed(profiler, "divided", [&] {
    fill(200 * kMs);
    const auto is_after_drain = [](const Profile& profile, std::size_t row) {
      bool found = false;
      VisitFrames(profile, profile.samples[row], [&](const Frame& frame) {
        found |= IsIn(frame, __start_after_drain, __stop_after_drain);
      });
      return found;
    };
    if (!kSignalsAreLate)
      WorkUntilExported(profiler, is_after_drain, [] { AfterDrain([] { BurnCpu(15 * kMs); }); });
  });
  const Brackets lost = RunBracketed(profiler, "lost", [&] { fill(200 * kMs); });
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectWithin(exports, "cpu", "divided", divided.cpu);
  ExpectWithin(exports, "cpu", "lost", lost.cpu);
}

// The system's time is set while a session runs.
struct JumpingClock {
  static inline std::atomic<std::int64_t> offset_ns{0};
  [[nodiscard]] std::int64_t MonotonicNs() const { return SystemClock().MonotonicNs(); }
  [[nodiscard]] std::int64_t UnixTimeNs() const {
    return SystemClock().UnixTimeNs() + offset_ns.load();
  }
};
struct JumpingTraits : CollectingTraits {
  using Clock = JumpingClock;
};

TEST_F(Conservation, ClockThatJumps) {
  constexpr std::int64_t kHour = 3'600'000'000'000;
  BasicProfiler<JumpingTraits> profiler({.sampling = {.wall_frequency_hz = 50}});
  const std::int64_t outer_ns = MonotonicNs();
  ASSERT_TRUE(profiler.Start().ok());
  const Brackets jumping = RunBracketed(profiler, "jumping", [&] {
    for (const std::int64_t offset : {kHour, -2 * kHour, std::int64_t{0}}) {
      BurnCpu(40 * kMs);
      JumpingClock::offset_ns = offset;
      BurnCpu(40 * kMs);
      EXPECT_TRUE(profiler.Flush().ok());
    }
  });
  ASSERT_TRUE(profiler.Stop().ok());
  const std::int64_t most_ns = MonotonicNs() - outer_ns;
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 4U);
  ExpectWithin(exports, "cpu", "jumping", jumping.cpu);
  ExpectWithin(exports, "wall", "jumping", jumping.wall);
  std::int64_t duration_ns = 0;
  for (const auto& exported : exports) {
    EXPECT_GT(exported.profile.duration_ns, 0);
    duration_ns += exported.profile.duration_ns;
  }
  EXPECT_LE(duration_ns, most_ns);
  // The label of the second period is an hour ahead, that of the third two hours behind.
  EXPECT_GT(exports[1].profile.time_ns - exports[0].profile.time_ns, kHour);
  EXPECT_LT(exports[2].profile.time_ns - exports[1].profile.time_ns, -2 * kHour);
}

__attribute__((noinline, section("one_side"))) void OneSide(std::int64_t cpu_ns) {
  BurnCpu(cpu_ns);
  asm volatile("");
}
__attribute__((noinline, section("other_side"))) void OtherSide(std::int64_t cpu_ns) {
  BurnCpu(cpu_ns);
  asm volatile("");
}

// How the samples divide a thread's time is proved on virtual time: InstantRoundsTest. Here both
// sides are seen, a sample is of one of them, and all add up.
TEST_F(Conservation, SamplesOfBothSidesOfAThreadAddUp) {
  if (kSignalsAreLate) GTEST_SKIP() << "ThreadSanitizer delivers signals late: stacks mean nothing";
  BasicProfiler<CollectingTraits> profiler;
  ASSERT_TRUE(profiler.Start().ok());
  const auto is_in = [](const Profile& profile, std::size_t row, const char* start,
                        const char* stop) {
    bool found = false;
    VisitFrames(profile, profile.samples[row],
                [&](const Frame& frame) { found |= IsIn(frame, start, stop); });
    return found;
  };
  const auto is_one = [&](const Profile& profile, std::size_t row) {
    return is_in(profile, row, __start_one_side, __stop_one_side);
  };
  const auto is_other = [&](const Profile& profile, std::size_t row) {
    return is_in(profile, row, __start_other_side, __stop_other_side);
  };
  Brackets split;
  std::thread([&] {
    split = RunBracketed(profiler, "split", [&] {
      const auto work = [] {
        OneSide(30 * kMs);
        OtherSide(70 * kMs);
      };
      WorkUntilExported(profiler, is_one, work);
      WorkUntilExported(profiler, is_other, work);
    });
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectWithin(exports, "cpu", "split", split.cpu);
  for (const auto& [profile, bytes] : exports) {
    for (std::size_t row = 0; row < profile.samples.size(); ++row)
      EXPECT_FALSE(is_one(profile, row) && is_other(profile, row));
  }
}

}  // namespace
}  // namespace strobe::testing
