#include "strobe/runtime/polls/instant_rounds.h"

#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../session_fixture.h"
#include "gtest/gtest.h"
#include "support/chance.h"

namespace strobe::internal {
namespace {

using testing::SumByThread;

constexpr Address kA = 0x400000;
constexpr Address kB = 0x500000;

// A thread that wakes at multiples of its period, works in A, then in B, and waits again.
struct Loop {
  std::int64_t period_ns = 4 * kMs;
  std::int64_t a_ns = kMs * 6 / 10;
  std::int64_t b_ns = kMs * 14 / 10;
  std::int64_t phase_ns = 0;  // of the wake-ups, against the clock

  // What it has used until then.
  [[nodiscard]] std::int64_t CpuNs(std::int64_t now_ns) const {
    const std::int64_t time_ns = now_ns - phase_ns;
    return time_ns / period_ns * (a_ns + b_ns) + std::min(time_ns % period_ns, a_ns + b_ns);
  }
  // Where it is; 0 while it waits.
  [[nodiscard]] Address At(std::int64_t now_ns) const {
    const std::int64_t time_ns = (now_ns - phase_ns) % period_ns;
    return time_ns < a_ns ? kA : time_ns < a_ns + b_ns ? kB : 0;
  }
};

// The test is the kernel and the thread: the collector wakes exactly when it wants to.
class InstantRoundsTest : public SessionTest {
 protected:
  void TearDown() override { SessionTest::TearDown(); }

  // Lets the thread be at what the loop is at now.
  void Follow(Thread* thread, const Loop& loop) {
    const std::uint64_t id = thread->channel->thread_id;
    const std::int64_t now_ns = Now();
    ManualPlatform::With([&](auto& state) {
      state.cpu_ns[id] = loop.CpuNs(now_ns);
      state.wait_count[id] = now_ns / loop.period_ns;
      state.on_cpu.clear();
      if (loop.At(now_ns) != 0) state.on_cpu.insert(id);
    });
  }
  // Runs the session for `time_ns`.
  void RunLoop(Thread* thread, const Loop& loop, std::int64_t time_ns) {
    const std::int64_t end_ns = Now() + time_ns;
    std::int64_t next_ns = Now();
    while (next_ns < end_ns) {
      ManualClock::Advance(std::max<std::int64_t>(next_ns - Now(), 0));
      Follow(thread, loop);
      next_ns = std::min(session_->Poll({}, Now()), Now() + 1000 * kMs);
      ManualPlatform::DeliverAll(loop.At(Now()));
      session_->Drain();
    }
    Follow(thread, loop);
  }
  // The same with the kernel's timers: they expire on its tick.
  void RunLoopOnTicks(Thread* thread, const Loop& loop, std::int64_t time_ns) {
    constexpr std::int64_t kTickNs = 4 * kMs;
    const auto timer = ManualPlatform::With(
        [&](auto& state) { return state.timers.at(thread->channel->thread_id); });
    std::int64_t done = 0;
    for (const std::int64_t end_ns = Now() + time_ns; Now() < end_ns;) {
      ManualClock::Advance(kTickNs - Now() % kTickNs);
      Follow(thread, loop);
      const std::int64_t used_ns = loop.CpuNs(Now()) - thread->attach_cpu_ns;
      const std::int64_t expiries =
          used_ns < timer.first_ns ? 0 : 1 + (used_ns - timer.first_ns) / timer.period_ns;
      if (loop.At(Now()) == 0 || expiries == done) continue;
      EXPECT_TRUE(ManualPlatform::Deliver(timer.payload, expiries - done, loop.At(Now())));
      done = expiries;
      session_->Drain();
    }
  }

  // The sums by the leaf's address, in one column.
  static std::map<Address, std::int64_t> SumByLeaf(const Profile& profile, std::size_t column) {
    std::map<Address, std::int64_t> sums;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const Frame& leaf = profile.frames[profile.stacks[profile.samples[i].stack].frame];
      sums[leaf.is_pseudo() ? 0 : leaf.address] += profile.Values(i)[column];
    }
    return sums;
  }
  // How many standard errors A's share is away from the truth.
  static double ErrorOf(const Profile& profile, double truth) {
    auto cpu_ns = SumByLeaf(profile, kCpu);
    auto samples = SumByLeaf(profile, kSamples);
    const auto a_ns = static_cast<double>(cpu_ns[kA]);
    const auto b_ns = static_cast<double>(cpu_ns[kB]);
    const auto count = static_cast<double>(samples[kA] + samples[kB]);
    return (a_ns / (a_ns + b_ns) - truth) / std::sqrt(truth * (1 - truth) / count);
  }
};

// The number of samples decides how a thread's CPU time is divided; the clock says how much there
// is. Each sample of a period has the same weight, because the instants are a Poisson process on
// the thread's own axis of CPU time: given their number, they are uniform there, so the share of
// those in A has the mean of A's share of the time, and the binomial's variance. (If each sample
// stood for the time since the one before, the mean would be the same and the variance twice that:
// the square of an exponential time has the mean 2.)
TEST_F(InstantRoundsTest, AThreadInStepWithTheTickIsSampledWithoutBias) {
  double mean_square = 0;
  for (int phase = 0; phase < 8; ++phase) {
    ManualPlatform::Reset();
    const Loop loop{.phase_ns = phase * kMs / 2};
    Thread* const thread = Register(1, "loop");
    Follow(thread, loop);
    Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
    const std::int64_t before_ns = loop.CpuNs(Now());
    RunLoop(thread, loop, 60'000 * kMs);
    const std::int64_t used_ns = loop.CpuNs(Now()) - before_ns;
    const Profile profile = Finish();
    Unregister(thread);
    auto cpu_ns = SumByLeaf(profile, kCpu);
    EXPECT_EQ(cpu_ns[kA] + cpu_ns[kB], used_ns) << "all of it is in the samples";
    EXPECT_NEAR(static_cast<double>(SumByThread(profile, kSamples)["loop"]), 3000, 4 * 55);
    const double error = ErrorOf(profile, 0.3);
    EXPECT_LT(std::abs(error), 4) << "phase " << phase;
    mean_square += error * error / 8;
  }
  EXPECT_LT(mean_square, 2);
}

// A thread that has begun to block the signal would find it pending: it gets none. What the samples
// would stand for is in the next one.
TEST_F(InstantRoundsTest, AThreadThatBlocksTheSignalLaterIsNotInterrupted) {
  const Loop loop;
  Thread* const thread = Register(1, "loop");
  Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  const std::int64_t before_ns = loop.CpuNs(Now());
  RunLoop(thread, loop, 1'000 * kMs);
  EXPECT_GT(thread->channel->counters.captures.load(), 0u);
  const auto captures = thread->channel->counters.captures.load();
  const std::uint64_t instants = counters_.instants;
  const std::uint64_t id = thread->channel->thread_id;
  ManualPlatform::With([&](auto& state) { state.blocking.insert(id); });
  RunLoop(thread, loop, 1'000 * kMs);
  EXPECT_GT(counters_.instants, instants);
  EXPECT_EQ(thread->channel->counters.captures.load(), captures);
  ManualPlatform::With([&](auto& state) { state.blocking.clear(); });
  RunLoop(thread, loop, 1'000 * kMs);
  EXPECT_GT(thread->channel->counters.captures.load(), captures);
  const std::int64_t used_ns = loop.CpuNs(Now()) - before_ns;
  const Profile profile = Finish();
  Unregister(thread);
  auto cpu_ns = SumByLeaf(profile, kCpu);
  EXPECT_EQ(cpu_ns[kA] + cpu_ns[kB], used_ns) << "all of it is in the samples";
}

// Where the collector stays on CPUs, it takes the CPU that the thread has, or finds it elsewhere.
class InstantsOnCpusTest : public InstantRoundsTest {
 protected:
  static constexpr std::uint64_t kId = 1;

  void SetUp() override {
    InstantRoundsTest::SetUp();
    ManualPlatform::With([](auto& state) { state.cpus = {0, 1}; });
  }

  // The loop's work of each period is on another CPU than that of the one before.
  static int CpuOf(const Loop& loop, std::int64_t now_ns) {
    return static_cast<int>((now_ns - loop.phase_ns) / loop.period_ns % 2);
  }
  void Follow(Thread* thread, const Loop& loop) {
    InstantRoundsTest::Follow(thread, loop);
    const int cpu = CpuOf(loop, Now());
    ManualPlatform::With([&](auto& state) {
      state.cpu_of[kId] = cpu;
      state.displaced.clear();
      if (state.own_cpu == cpu && !state.on_cpu.empty()) {
        state.on_cpu.clear();
        state.displaced.insert(kId);
      }
    });
  }
  // Runs the session for `time_ns`, in which each instant is late by `late_ns`.
  void Run(Thread* thread, const Loop& loop, std::int64_t time_ns, std::int64_t late_ns = 0) {
    const std::int64_t end_ns = Now() + time_ns;
    std::int64_t next_ns = Now();
    while (next_ns < end_ns) {
      ManualClock::Advance(std::max<std::int64_t>(next_ns - Now(), 0) + late_ns);
      Follow(thread, loop);
      next_ns = std::min(session_->Poll({}, Now()), Now() + 1000 * kMs);
      ManualPlatform::DeliverAll(loop.At(Now()));
      session_->Drain();
    }
    Follow(thread, loop);
  }
  // Since the last call.
  std::uint64_t CapturesOf(const Thread* thread) {
    const std::uint64_t before = captures_;
    captures_ = thread->channel->counters.captures.load();
    return captures_ - before;
  }

 private:
  std::uint64_t captures_ = 0;
};

TEST_F(InstantsOnCpusTest, AThreadThatMovesIsSampledWithoutBias) {
  double mean_square = 0;
  for (int phase = 0; phase < 8; ++phase) {
    ManualPlatform::Reset();
    ManualPlatform::With([](auto& state) { state.cpus = {0, 1}; });
    const Loop loop{.phase_ns = phase * kMs / 2};
    Thread* const thread = Register(kId, "loop");
    Follow(thread, loop);
    Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
    const std::int64_t before_ns = loop.CpuNs(Now());
    Run(thread, loop, 60'000 * kMs);
    const std::int64_t used_ns = loop.CpuNs(Now()) - before_ns;
    const Profile profile = Finish();
    Unregister(thread);
    auto cpu_ns = SumByLeaf(profile, kCpu);
    EXPECT_EQ(cpu_ns[kA] + cpu_ns[kB], used_ns) << "all of it is in the samples";
    // 3000 where each instant is a sample of the requested rate; what a draw finds varies.
    EXPECT_GT(SumByThread(profile, kSamples)["loop"], 2000);
    EXPECT_LT(SumByThread(profile, kSamples)["loop"], 4500);
    const double error = ErrorOf(profile, 0.3);
    EXPECT_LT(std::abs(error), 4) << "phase " << phase;
    mean_square += error * error / 8;
  }
  EXPECT_LT(mean_square, 2);
}

// On another CPU the signal would come late, and at the end of a system call.
TEST_F(InstantsOnCpusTest, AThreadThatRunsElsewhereIsNotInterrupted) {
  const Loop loop{.a_ns = 4 * kMs, .b_ns = 0};
  Thread* const thread = Register(kId, "loop");
  Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  CapturesOf(thread);
  Run(thread, loop, 10'000 * kMs);
  const std::uint64_t instants = counters_.instants;
  const std::uint64_t captures = CapturesOf(thread);
  EXPECT_GT(instants, captures * 5 / 4) << "some are on the other CPU";
  EXPECT_GT(captures, instants / 4);
  Finish();
  Unregister(thread);
}

// The one that is always found must not keep the collector from looking for the other one.
TEST_F(InstantsOnCpusTest, AThreadWhereTheProcessMayNotBeIsFound) {
  ManualPlatform::With([](auto& state) {
    state.cpus = {0};
    state.cpu_of = {{1, 0}, {2, 1}};
  });
  Thread* const first = Register(1, "first");
  Thread* const second = Register(2, "second");
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  std::set<std::uint64_t> ids;
  for (int i = 0; i < 400; ++i) {
    ManualClock::Advance(std::max<std::int64_t>(session_->Poll({}, Now()) - Now(), 0));
    for (const std::uint64_t id : {1, 2}) ManualPlatform::RunFor(id, kMs);
    ManualPlatform::With([&](auto& state) {
      state.displaced.clear();
      for (const auto& [id, cpu] : state.cpu_of) {
        if (cpu == state.own_cpu) state.displaced.insert(id);
      }
    });
    session_->Poll({}, Now());
    for (const auto& interruption :
         ManualPlatform::With([](auto& state) { return std::exchange(state.interruptions, {}); }))
      ids.insert(interruption.thread_id);
  }
  EXPECT_EQ(ids, (std::set<std::uint64_t>{1, 2}));
  Finish();
  Unregister(first);
  Unregister(second);
}

// Another thread has kept the CPU beyond the instant, and may choose where it lets the CPU go.
TEST_F(InstantsOnCpusTest, AnInstantThatComesLateSamplesNobody) {
  const Loop loop{.a_ns = 4 * kMs, .b_ns = 0};
  Thread* const thread = Register(kId, "loop");
  Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  Run(thread, loop, kMs, kMostLateNs + 1);  // the first instant was planned without the delay
  CapturesOf(thread);
  Run(thread, loop, 1'000 * kMs, kMostLateNs + 1);
  EXPECT_GT(counters_.instants, 10u);
  EXPECT_EQ(CapturesOf(thread), 0u);
  Run(thread, loop, 1'000 * kMs, kMostLateNs / 2);
  EXPECT_GT(CapturesOf(thread), 0u);
  Finish();
  Unregister(thread);
}

// One with a real-time policy, say: the collector never takes its CPU.
TEST_F(InstantsOnCpusTest, AThreadThatDoesNotYieldIsSampledFromElsewhere) {
  ManualPlatform::With([](auto& state) { state.keeps_cpu.insert(kId); });
  const Loop loop{.a_ns = 4 * kMs, .b_ns = 0};
  Thread* const thread = Register(kId, "loop");
  InstantRoundsTest::Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  CapturesOf(thread);
  RunLoop(thread, loop, 5'000 * kMs);
  EXPECT_GT(CapturesOf(thread), 300u);
  ManualPlatform::With([](auto& state) { state.displaced.insert(kId); });
  const std::uint64_t instants = counters_.instants;
  RunLoop(thread, loop, 5'000 * kMs);
  EXPECT_LE(CapturesOf(thread), counters_.instants - instants) << "one way only";
  Finish();
  Unregister(thread);
}

TEST_F(InstantsOnCpusTest, TheCollectorLeavesTheCpuWhenNobodyIsAtInstants) {
  const auto own_cpu = [] {
    return ManualPlatform::With([](auto& state) { return state.own_cpu; });
  };
  const Loop loop;
  Thread* const thread = Register(kId, "loop");
  Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  Run(thread, loop, 100 * kMs);
  EXPECT_NE(own_cpu(), kAnyCpu);
  Unregister(thread);
  Run(thread, loop, 3'000 * kMs);
  EXPECT_EQ(own_cpu(), kAnyCpu);
  Finish();
}

// A drain would take the CPU of the thread that is sampled.
TEST_F(InstantsOnCpusTest, TheCollectorCanLeaveTheCpuForOtherWork) {
  const auto own_cpu = [] {
    return ManualPlatform::With([](auto& state) { return state.own_cpu; });
  };
  const Loop loop{.a_ns = 4 * kMs, .b_ns = 0};
  Thread* const thread = Register(kId, "loop");
  Follow(thread, loop);
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  Run(thread, loop, 100 * kMs);
  EXPECT_TRUE(session_->LeaveCpu());
  EXPECT_EQ(own_cpu(), kAnyCpu);
  EXPECT_FALSE(session_->LeaveCpu());
  const std::uint64_t instants = counters_.instants;
  ManualClock::Advance(1000 * kMs);
  EXPECT_GT(session_->Poll({}, Now()), Now()) << "another one is planned";
  EXPECT_EQ(counters_.instants, instants) << "none came meanwhile";
  EXPECT_NE(own_cpu(), kAnyCpu);
  Finish();
  Unregister(thread);
}

// One with a timer loses it soon, and has one again later.
TEST_F(InstantRoundsTest, AThreadThatBlocksTheSignalLaterHasNoTimer) {
  Thread* const thread = Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  const auto has_timer_after = [&](std::int64_t time_ns) {
    for (std::int64_t passed_ns = 0; passed_ns < time_ns; passed_ns += 20 * kMs) {
      ManualClock::Advance(20 * kMs);
      ManualPlatform::With([&](auto& state) { state.cpu_ns[1] += 20 * kMs; });
      session_->Poll({}, Now());
    }
    return ManualPlatform::With([](auto& state) { return !state.timers.empty(); });
  };
  EXPECT_TRUE(has_timer_after(3'000 * kMs));
  ManualPlatform::With([](auto& state) { state.blocking.insert(1); });
  EXPECT_FALSE(has_timer_after(60 * kMs));
  EXPECT_FALSE(has_timer_after(3'000 * kMs));
  ManualPlatform::With([](auto& state) { state.blocking.clear(); });
  EXPECT_TRUE(has_timer_after(3'000 * kMs));
  Finish();
  Unregister(thread);
}

// Of these threads, a recording's rate is a rate of instants.
TEST_F(InstantRoundsTest, ARecordingCanAskForMoreInstantsWithinTheBudget) {
  for (const double max_overhead : {1.0, 0.001}) {
    ManualPlatform::Reset();
    const Loop loop;
    Thread* const thread = Register(1, "loop");
    Follow(thread, loop);
    Begin({.trigger = SampleTrigger::kRandom, .max_overhead = max_overhead});
    const std::int64_t before_ns = loop.CpuNs(Now());
    const auto instants_per_second = [&] {
      const std::uint64_t before = counters_.instants;
      RunLoop(thread, loop, 10'000 * kMs);
      return static_cast<double>(counters_.instants - before) / 10;
    };
    const double own_hz = instants_per_second();
    const std::size_t place = *session_->BeginRecording(session_->columns(), kMs);
    const double recording_hz = instants_per_second();
    session_->EndRecording(place);
    const double later_hz = instants_per_second();
    EXPECT_EQ(SumByThread(Finish(), kCpu)["loop"], loop.CpuNs(Now()) - before_ns);
    Unregister(thread);
    if (max_overhead < 1) {
      EXPECT_LT(recording_hz, 500);
      continue;
    }
    // Five standard deviations.
    EXPECT_NEAR(own_hz, 100, 16);
    EXPECT_NEAR(recording_hz, 1000, 50);
    EXPECT_NEAR(later_hz, 100, 16);
  }
}

// What the others do, and the reason for all this.
TEST_F(InstantRoundsTest, TimersOnTheTickSeeOneSideOfSuchAThread) {
  bool has_bias = false;
  for (int phase = 0; phase < 8; ++phase) {
    ManualPlatform::Reset();
    const Loop loop{.phase_ns = phase * kMs / 2};
    Thread* const thread = Register(1, "loop");
    Follow(thread, loop);
    Begin({.trigger = SampleTrigger::kTimers});
    RunLoopOnTicks(thread, loop, 10'000 * kMs);
    const Profile profile = Finish();
    Unregister(thread);
    has_bias |= SumByThread(profile, kSamples)["loop"] == 0 || std::abs(ErrorOf(profile, 0.3)) > 10;
  }
  EXPECT_TRUE(has_bias);
}

// A thread that computes for longer than a period at a time, in step with nothing, gets a timer:
// its samples are spread evenly over its CPU time, from a random instant on, so they are divided as
// that is, and vary less than independent ones. The seeds are fixed by the times and threads'
// numbers.
TEST_F(InstantRoundsTest, TimersDivideAThreadThatComputesAsItUsesItsTime) {
  for (std::uint64_t run = 1; run <= 8; ++run) {
    ManualPlatform::Reset();
    expiries_.clear();
    Thread* const thread = Register(run, "computes");
    Begin({.trigger = SampleTrigger::kTimers});
    RandomSource random(run);
    std::map<Address, std::int64_t> used_ns;
    const auto work = [&](Address pc, double mean_ns) {
      const auto end_ns =
          used_ns[pc] + static_cast<std::int64_t>(mean_ns * (0.5 + random.Uniform()));
      for (; used_ns[pc] < end_ns; used_ns[pc] += kMs / 2) Run(thread, kMs / 2, pc);
    };
    for (int round = 0; round < 300; ++round) {
      work(kA, 30e6);
      work(kB, 70e6);
      session_->Drain();
    }
    const Profile profile = Finish();
    Unregister(thread);
    auto cpu_ns = SumByLeaf(profile, kCpu);
    auto samples = SumByLeaf(profile, kSamples);
    EXPECT_EQ(cpu_ns[kA] + cpu_ns[kB], used_ns[kA] + used_ns[kB]);
    const auto all_ns = static_cast<double>(used_ns[kA] + used_ns[kB]);
    testing::ExpectWithinChance(static_cast<double>(samples[kA]),
                                testing::BinomialBounds(samples[kA] + samples[kB],
                                                        static_cast<double>(used_ns[kA]) / all_ns),
                                "samples in A, thread " + std::to_string(run));
    // The period is dithered by kDither.
    EXPECT_NEAR(static_cast<double>(samples[kA] + samples[kB]), all_ns / 10e6,
                all_ns / 10e6 * 1.05 * CpuTimeProvider::kDither);
  }
}

// The rate changes with the budget, and samples are weighted by it: a program that does other work
// while the rate is low than while it is high is still divided right.
TEST_F(InstantRoundsTest, ARateThatFallsMovesNoShare) {
  double mean_square = 0;
  for (std::uint64_t run = 0; run < 8; ++run) {
    ManualPlatform::Reset();
    // Only A in the first second, at the requested rate; only B in the next three, at a rate that
    // the budget holds down: the machine's clocks say that the profiler costs a tenth of a CPU.
    Thread* const thread = Register(1, "loop");
    const Loop a{.a_ns = 2 * kMs, .b_ns = 0};
    const Loop b{.a_ns = 0, .b_ns = 2 * kMs};
    Follow(thread, a);
    Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 0.001});
    ManualClock::Advance(static_cast<std::int64_t>(run) * 7919);
    RunLoop(thread, a, 1000 * kMs);
    RunLoop(thread, b, 3000 * kMs);
    const Profile profile = Finish();
    Unregister(thread);
    auto cpu_ns = SumByLeaf(profile, kCpu);
    auto samples = SumByLeaf(profile, kSamples);
    const auto share =
        static_cast<double>(cpu_ns[kA]) / static_cast<double>(cpu_ns[kA] + cpu_ns[kB]);
    // Of a sum of weights w, the variance is the sum of their squares; of the share, about the sum
    // of both relative variances.
    const double error = share * (1 - share) *
                         std::sqrt(1 / static_cast<double>(samples[kA]) +
                                   1 / static_cast<double>(std::max<std::int64_t>(samples[kB], 1)));
    mean_square += std::pow((share - 0.25) / error, 2) / 8;
  }
  EXPECT_LT(mean_square, 2.5);
}

TEST_F(InstantRoundsTest, NoInstantComesWhileNoThreadIsAtInstants) {
  Thread* const thread = Register(1, "idle");
  Begin({});
  for (int second = 0; second < 5; ++second) {
    ManualClock::Advance(1000 * kMs);
    session_->Poll({}, Now());
  }
  EXPECT_EQ(thread->timer_kind, TimerKind::kPeriodic) << "a timer costs an idle thread nothing";
  EXPECT_EQ(session_->Poll({}, Now()), INT64_MAX);
  EXPECT_EQ(counters_.threads_at_instants, 0u);
}

TEST_F(InstantRoundsTest, AThreadThatComesIsSampledAtTheNextInstant) {
  Begin({.trigger = SampleTrigger::kRandom});
  EXPECT_EQ(session_->Poll({}, Now()), INT64_MAX);
  Thread* const thread = Register(7, "late");
  const std::int64_t due_ns = session_->Poll({}, Now());
  ASSERT_LT(due_ns, INT64_MAX);
  EXPECT_EQ(counters_.threads_at_instants, 1u);
  ManualPlatform::With([](auto& state) { state.on_cpu.insert(7); });
  ManualClock::Advance(due_ns - Now());
  session_->Poll({}, Now());
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.interruptions.size(); }), 1u);
  EXPECT_GT(thread->channel->cells[0].requested, 0);
}

TEST_F(InstantRoundsTest, ThreadsThatWaitAreNeverInterruptedAndCostNoClockRead) {
  for (std::uint64_t id = 2; id < 100; ++id) Register(id, "idle");
  Thread* const runner = Register(1, "runner");
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  const auto instants = [&](int count) {
    for (int i = 0; i < count; ++i) {
      ManualClock::Advance(session_->Poll({}, Now()) - Now());
      ManualPlatform::RunFor(1, 10 * kMs);
    }
  };
  ManualPlatform::With([](auto& state) { state.on_cpu.insert(1); });
  instants(50);
  ManualPlatform::With([](auto& state) { state.clock_reads = 0; });
  instants(50);
  EXPECT_LE(ManualPlatform::With([](auto& state) { return state.clock_reads; }), 5 * 50)
      << "the runner's, the collector's, one idle thread's";
  for (const auto& interruption :
       ManualPlatform::With([](auto& state) { return state.interruptions; }))
    EXPECT_EQ(interruption.thread_id, runner->channel->thread_id);
}

TEST_F(InstantRoundsTest, AThreadWhoseCpuTheCollectorHasTakenIsSampled) {
  for (const std::uint64_t id : {1, 2, 3}) Register(id, "thread");
  Begin({.trigger = SampleTrigger::kRandom, .max_overhead = 1});
  const auto instant = [&] {
    ManualClock::Advance(session_->Poll({}, Now()) - Now());
    for (const std::uint64_t id : {1, 2}) ManualPlatform::RunFor(id, kMs);
    session_->Poll({}, Now());
    std::set<std::uint64_t> ids;
    for (const auto& interruption :
         ManualPlatform::With([](auto& state) { return std::exchange(state.interruptions, {}); })) {
      ids.insert(interruption.thread_id);
      EXPECT_TRUE(interruption.was_running);
    }
    return ids;
  };
  EXPECT_EQ(instant(), std::set<std::uint64_t>{}) << "they have run, and wait";
  ManualPlatform::With([](auto& state) { state.displaced = {2, 3}; });
  EXPECT_EQ(instant(), std::set<std::uint64_t>{2}) << "the third one has not run at all";
}

TEST_F(InstantRoundsTest, AThreadThatBlocksTheSignalIsNotInterrupted) {
  Thread* const thread = Register(1, "blocks");
  Begin({.trigger = SampleTrigger::kRandom});
  thread->blocks_signal = true;
  ManualPlatform::With([](auto& state) { state.on_cpu.insert(1); });
  for (int i = 0; i < 10; ++i) ManualClock::Advance(session_->Poll({}, Now()) - Now());
  EXPECT_TRUE(ManualPlatform::With([](auto& state) { return state.interruptions.empty(); }));
}

}  // namespace
}  // namespace strobe::internal
