#include "strobe/runtime/session/session.h"

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../manual_traits.h"
#include "../session_fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::SumByThread;
using testing::SumOfPseudo;

TEST_F(SessionTest, AContextSplitsTheRowsOfOneStackAndChangesNoSum) {
  Begin();
  Thread* thread = Register(5, "worker");
  const std::uint64_t request = ProcessLabels().Intern({{"request", 7}});
  Run(thread, 200 * kMs);
  thread->channel->context.SetLabels(request);
  Run(thread, 300 * kMs);
  thread->channel->context.SetLabels(0);
  Run(thread, 100 * kMs);
  const Profile profile = Finish();
  std::map<std::int64_t, std::int64_t> cpu_ns;  // by request
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    EXPECT_EQ(profile.Labels(i).Text(kThreadNameLabel), "worker");
    cpu_ns[profile.Labels(i).Number("request")] += profile.Values(i)[kCpu];
  }
  EXPECT_EQ(cpu_ns.size(), 2u);
  // The first sample under other labels has all the time since the last one, a drawn time of 10 ms
  // in the mean: so each of the two changes moves one sample's weight at most.
  constexpr std::int64_t kMostWeight = 20 * kMs;
  EXPECT_NEAR(static_cast<double>(cpu_ns[7]), 300 * kMs, kMostWeight);
  EXPECT_NEAR(static_cast<double>(cpu_ns[0]), 300 * kMs, kMostWeight);
  EXPECT_EQ(SumByThread(profile, kCpu), (Sums{{"worker", 600 * kMs}}));
}

// A thread whose CPU clock says that it has not run may still have set other labels just before.
TEST_F(SessionTest, AWaitingThreadsStackIsNotExtendedUnderAnotherContext) {
  Begin({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  Thread* thread = Register(5, "waiter");
  const auto poll = [&] {
    ManualClock::Advance(200 * kMs);
    session_->Poll({}, Now());
    return thread->channel->cells[1].requested.load();
  };
  ASSERT_GT(poll(), 0);
  ChannelToken token = thread->channel->token;
  token.provider = 1;
  EXPECT_TRUE(ManualPlatform::Deliver(token.Pack(), 0, 0x400000));
  EXPECT_EQ(poll(), 0) << "its last stack is extended";
  thread->channel->context.SetLabels(7);
  EXPECT_GT(poll(), 0) << "it is asked for a stack";
}

TEST_F(SessionTest, EachThreadsValuesAreItsClocks) {
  Thread* const early = Register(1, "early");
  Begin();
  Thread* const late = Register(2, "late");
  const std::int64_t begin_ns = Now();
  for (int i = 0; i < 100; ++i) {
    Run(early, 7 * kMs + i, 0x400000 + static_cast<Address>(i % 5) * 16);
    Run(late, i * kMs / 10);
    if (i % 3 == 0) session_->Poll({}, Now());
    if (i % 4 == 0) ManualPlatform::DeliverAll(0x500000);
    if (i % 7 == 0) session_->Drain();
  }
  const std::int64_t wall_ns = Now() - begin_ns;
  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, kCpu), (Sums{{"early", 700 * kMs + 4950}, {"late", 495 * kMs}}));
  EXPECT_EQ(SumByThread(profile, kWall), (Sums{{"early", wall_ns}, {"late", wall_ns}}));
  EXPECT_EQ(SumByThread(profile, kSamples),
            (Sums{{"early", expiries_[early]}, {"late", expiries_[late]}}));
}

TEST_F(SessionTest, PeriodsAddUpToTheWhole) {
  Thread* const thread = Register(1, "thread");
  Begin();
  for (int period = 0; period < 5; ++period) {
    for (int i = 0; i < 20; ++i) Run(thread, 3 * kMs);
    session_->Drain();
    const Profile profile = Take();
    EXPECT_EQ(SumByThread(profile, kCpu)["thread"], 60 * kMs) << "each period is the clock's";
    EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kResidual, kCpu), 0) << "the samples have it all";
  }
  EXPECT_EQ(SumByThread(Finish(), kCpu)["thread"], 0);
}

// Threads that come, run for much less or more than a period, and go, over many exports: no value
// is less than 0, no thread's sum is ever more than its clock, and in the end each is its clock.
TEST_F(SessionTest, NoProfileSaysMoreOfAThreadThanItsClock) {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    RandomSource random(seed);
    const auto below = [&](double limit) {
      return static_cast<std::int64_t>(random.Uniform() * limit);
    };
    ManualPlatform::With([&](auto& state) { state.refuses_timers = seed % 5 == 0; });
    Begin();
    std::vector<std::pair<Thread*, std::string>> threads;
    Sums clocks;
    Sums sums;
    const auto take = [&](const Profile& profile) {
      EXPECT_EQ(testing::CheckProfile(profile), "");
      for (const auto& [name, cpu_ns] : SumByThread(profile, kCpu)) sums[name] += cpu_ns;
      for (const auto& [name, cpu_ns] : sums)
        ASSERT_LE(cpu_ns, clocks[name]) << name << ", seed " << seed;
    };
    for (std::uint64_t step = 0; step < 400; ++step) {
      if (threads.empty() || below(8) == 0) {
        const std::string name = "thread " + std::to_string(step);
        threads.emplace_back(Register(seed * 1000 + step, name), name);
        expiries_.erase(threads.back().first);
      }
      const auto thread = threads.begin() + below(static_cast<double>(threads.size()));
      const std::int64_t cpu_ns = below(below(2) == 0 ? 4e6 : 40e6);
      Run(thread->first, cpu_ns, 0x400000 + static_cast<Address>(below(4)) * 16);
      clocks[thread->second] += cpu_ns;
      session_->Poll({}, Now());
      if (below(3) == 0) ManualPlatform::DeliverAll(0x500000);
      if (below(6) == 0) session_->Drain();
      if (below(10) == 0) take(Take());
      if (below(8) == 0) {
        Unregister(thread->first);
        threads.erase(thread);
      }
    }
    take(Finish());
    std::erase_if(clocks, [](const auto& clock) { return clock.second == 0; });
    std::erase_if(sums, [](const auto& sum) { return sum.second == 0; });
    ASSERT_EQ(sums, clocks) << "seed " << seed;
    for (const auto& [thread, name] : threads) Unregister(thread);
    ManualPlatform::Reset();
  }
}

TEST_F(SessionTest, EachPeriodHasTheLivesOfItsThreads) {
  const auto unix_ns = [] { return ManualClock().UnixTimeNs(); };
  const std::int64_t begin_ns = unix_ns();
  Thread* const stays = Register(1, "stays");
  ManualClock::Advance(kMs);
  Begin();
  for (std::uint64_t period = 0; period < 3; ++period) {
    Run(stays, 30 * kMs);
    const std::int64_t goes_begin_ns = unix_ns();
    Thread* const goes = Register(2 + period, "goes");
    Run(goes, kMs);
    Unregister(goes);
    const std::int64_t goes_end_ns = unix_ns();
    ManualClock::Advance(kMs);
    if (period != 1) session_->Drain();  // else the period's end finds it ended
    const Profile profile = Take();
    ASSERT_EQ(profile.threads.size(), 2u) << "period " << period;
    for (const ProfileThread& thread : profile.threads) {
      const bool is_short = thread.name == "goes";
      EXPECT_EQ(thread.begin_ns, is_short ? goes_begin_ns : begin_ns);
      EXPECT_EQ(thread.end_ns, is_short ? goes_end_ns : 0);
      EXPECT_EQ(thread.cpu_ns, is_short ? kMs : 30 * kMs);
      if (!is_short && period != 1) {
        EXPECT_GT(thread.samples, 0u);
      }
    }
    session_->Drain();
  }
  EXPECT_EQ(Finish().threads.at(0).end_ns, 0) << "the registration outlives the session";
}

TEST_F(SessionTest, AThreadThatEndsIsSettledAtTheNextDrainAndItsThreadUsedAgain) {
  Begin();
  Thread* const thread = Register(1, "first");
  Run(thread, 55 * kMs);
  Unregister(thread);
  EXPECT_EQ(registry_.CopyRetired().size(), 1u);
  session_->Drain();
  EXPECT_TRUE(registry_.CopyRetired().empty());
  expiries_.clear();
  Thread* const again = Register(1, "second");
  EXPECT_EQ(again, thread);
  Run(again, 23 * kMs);
  EXPECT_EQ(SumByThread(Finish(), kCpu), (Sums{{"first", 55 * kMs}, {"second", 23 * kMs}}));
}

TEST_F(SessionTest, ALateSignalOfAnEndedRegistrationCreditsNobody) {
  Begin();
  Thread* const thread = Register(1, "first");
  const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
  Unregister(thread);
  EXPECT_FALSE(ManualPlatform::Deliver(timer.payload, 1, 0x400000));
  session_->Drain();
  Register(1, "second");
  EXPECT_FALSE(ManualPlatform::Deliver(timer.payload, 1, 0x400000))
      << "the thread serves another registration now";
  EXPECT_EQ(SumByThread(Finish(), kSamples)["second"], 0);
}

TEST_F(SessionTest, ALateSignalOfAnEndedSessionCreditsNobody) {
  Register(1, "thread");
  Begin();
  const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
  Finish();
  EXPECT_TRUE(ManualPlatform::With([](auto& state) { return state.timers.empty(); }));
  Begin();
  EXPECT_FALSE(ManualPlatform::Deliver(timer.payload, 1, 0x400000));
}

TEST_F(SessionTest, ACaptureThatOutlivesItsSessionComesIntoNoOther) {
  Thread* const thread = Register(1, "held");
  Begin();
  Run(thread, 100 * kMs);
  HoldingUnwinder::is_to_hold = true;
  const auto timer = ManualPlatform::With([](auto& state) { return state.timers.at(1); });
  std::thread held([&] {
    RegistrationLinks() = thread;
    EXPECT_TRUE(ManualPlatform::Deliver(timer.payload, 1, 0x500000));
  });
  while (!HoldingUnwinder::is_holding.load()) std::this_thread::yield();
  EXPECT_EQ(SumByThread(Finish(), kCpu)["held"], 100 * kMs);
  EXPECT_EQ(counters_.waits_abandoned, 1u);

  Begin();
  Thread* const other = Register(2, "other");
  EXPECT_FALSE(thread->is_attached) << "what the capture writes would come into this session";
  EXPECT_TRUE(other->is_attached);
  HoldingUnwinder::is_to_hold = false;
  held.join();
  const std::uint64_t samples_before = counters_.samples;
  session_->Drain();
  EXPECT_EQ(counters_.samples, samples_before);
  EXPECT_TRUE(thread->is_attached) << "at the first drain after the capture's end";
  expiries_.clear();
  Run(thread, 200 * kMs);
  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, kCpu)["held"], 200 * kMs);
  EXPECT_EQ(SumByThread(profile, kSamples)["held"], 1);
  EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kLost, kCpu), 0);
}

TEST_F(SessionTest, WhatNoRecordCouldBeWrittenForIsDividedAmongTheThreadsSamples) {
  Thread* const thread = Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  int drops = 0;
  while ((drops = static_cast<int>(
              thread->channel->counters.drops[static_cast<std::size_t>(DropReason::kRingFull)])) <
         5)
    Run(thread, 10 * kMs);
  const std::int64_t used_ns = ManualPlatform::ThreadCpuTimeNs(1);
  const Profile profile = Finish();
  EXPECT_EQ(SumByThread(profile, kCpu)["thread"], used_ns);
  EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kLost, kCpu), 0);
  EXPECT_EQ(SumOfPseudo(profile, PseudoFrame::kResidual, kCpu), 0);
}

TEST_F(SessionTest, GeneratedCodeIsAModuleWhileItIsRegisteredAndThereafterInWhatWasSampled) {
  const auto* const start = reinterpret_cast<const void*>(0x700000);
  ASSERT_TRUE(generated_.Add({.name = "one", .start = start, .bytes = 0x100}).ok());
  Thread* const thread = Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  Run(thread, 100 * kMs, 0x700010);
  session_->Drain();
  generated_.Remove(0x700000);
  ASSERT_TRUE(generated_.Add({.name = "two", .start = start, .bytes = 0x100}).ok());
  session_->Drain();
  Run(thread, 100 * kMs, 0x700010);
  generated_.Remove(0x700000);
  session_->Drain();
  Run(thread, 100 * kMs, 0x700010);
  const Profile profile = Finish();
  std::vector<std::string> names;
  for (const Frame& frame : profile.frames) {
    if (!frame.is_pseudo())
      names.push_back(frame.module < profile.modules.size() ? profile.modules[frame.module].path
                                                            : "nobody's");
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("one", "two", "nobody's"));
}

TEST_F(SessionTest, TheLoaderIsAskedForItsImagesOnlyWhenTheyHaveChanged) {
  Begin({.trigger = SampleTrigger::kTimers});
  const auto listings = [] {
    return ManualPlatform::With([](auto& state) { return state.module_listings; });
  };
  const int before = listings();
  for (Address i = 0; i < 100; ++i) {
    ASSERT_TRUE(
        generated_
            .Add({.name = "code", .start = reinterpret_cast<const void*>(0x700000 + i), .bytes = 1})
            .ok());
    session_->Drain();
  }
  EXPECT_EQ(counters_.code.refreshes, 101U);
  EXPECT_EQ(listings(), before);
  ManualPlatform::With([](auto& state) { ++state.module_version; });
  session_->Drain();
  EXPECT_EQ(listings(), before + 1);
}

TEST_F(SessionTest, RecordsKeepTheGenerationThatTheyWereCapturedUnder) {
  const auto load = [](const char* path) {
    ManualPlatform::With([&](auto& state) {
      Module module;
      module.start = 0x400000;
      module.limit = 0x500000;
      module.path = path;
      state.modules = {module};
      ++state.module_version;
    });
  };
  load("/one");
  Thread* const thread = Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  Run(thread, 100 * kMs, 0x400100);
  load("/two");
  session_->Drain();  // sees the change, and the records from before it
  Run(thread, 100 * kMs, 0x400100);
  const Profile profile = Finish();
  std::vector<std::string> paths;
  for (const Frame& frame : profile.frames) {
    if (frame.module < profile.modules.size()) paths.push_back(profile.modules[frame.module].path);
  }
  EXPECT_THAT(paths, ::testing::UnorderedElementsAre("/one", "/two"));
  EXPECT_EQ(counters_.code.refreshes, 2u);
}

TEST_F(SessionTest, AnEndedSessionAttachesNobody) {
  Begin();
  session_->End();
  Thread* const thread = Register(1, "late");
  EXPECT_FALSE(thread->is_attached);
  EXPECT_TRUE(ManualPlatform::With([](auto& state) { return state.timers.empty(); }));
}

TEST_F(SessionTest, MemoryOfThreadsThatAreLongIdleOrGoneIsGivenBack) {
  Thread* const idle = Register(1, "idle");
  Thread* const busy = Register(2, "busy");
  Thread* const gone = Register(3, "gone");
  const std::map<void*, Thread*> threads{{&idle->channel->memo(), idle},
                                         {&busy->channel->memo(), busy},
                                         {&gone->channel->memo(), gone}};
  Begin({.trigger = SampleTrigger::kTimers});
  for (Thread* thread : {idle, busy, gone}) Run(thread, 100 * kMs);
  Unregister(gone);
  std::vector<Thread*> discarded;
  for (int period = 0; period < 4; ++period) {
    session_->Drain();
    ManualClock::Advance(kLongIdleNs);
    Take();
    Run(busy, 100 * kMs);
    for (void* memory :
         ManualPlatform::With([](auto& state) { return std::exchange(state.discarded, {}); })) {
      if (threads.contains(memory)) discarded.push_back(threads.at(memory));
    }
  }
  EXPECT_THAT(discarded, ::testing::UnorderedElementsAre(idle, gone)) << "each once";
  Run(idle, 100 * kMs);
  session_->Drain();
  EXPECT_EQ(SumByThread(Take(), kSamples)["idle"], 1) << "it is sampled as before";
  Finish();
  EXPECT_FALSE(busy->channel->holds_memory()) << "no collector runs";
}

TEST_F(SessionTest, AttachingTwiceIsOnce) {
  Thread* const thread = Register(1, "thread");
  Begin({.trigger = SampleTrigger::kTimers});
  const std::uint16_t use = thread->channel->token.use;
  session_->Attach(*thread);
  EXPECT_EQ(thread->channel->token.use, use);
  session_->Detach(*thread);
  session_->Detach(*thread);
}

TEST_F(SessionTest, ThePeriodsTimesAreTheClocksAndAJumpOfTheDayMovesOnlyTheLabel) {
  Begin({.trigger = SampleTrigger::kTimers});
  const std::int64_t unix_ns = ManualClock().UnixTimeNs();
  ManualClock::Advance(60'000 * kMs);
  ManualClock::SetUnixTimeNs(5);
  const auto first = session_->TakePeriod();
  EXPECT_EQ(first.time_ns, unix_ns);
  EXPECT_EQ(first.duration_ns, 60'000 * kMs);
  ManualClock::SetUnixTimeNs(unix_ns * 2);
  ManualClock::Advance(kMs);
  const auto second = session_->TakePeriod();
  EXPECT_EQ(second.time_ns, 5);
  EXPECT_EQ(second.duration_ns, kMs);
}

TEST_F(SessionTest, WithoutAProviderThereIsNothingToDo) {
  Begin({.cpu_frequency_hz = 0});
  EXPECT_FALSE(session_->has_provider());
}

}  // namespace
}  // namespace strobe::internal
