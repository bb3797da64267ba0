// Walks that a capture has no table for: from the handler through the ring to the collector, on one
// thread.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "strobe/runtime/session/session.h"
#include "table_traits.h"

namespace strobe::internal {
namespace {

using testing::kText;
using testing::ManualClock;
using testing::ManualPlatform;
using testing::TableTraits;

constexpr Address kPieces = 4;
constexpr std::size_t kDepth = 6;

// Frame information cannot be read on this platform: so the tables, once built, know nothing, and
// stacks are walked by frame pointers.
class DeferredWalks : public ::testing::Test {
 protected:
  using Thread = RegisteredThread<TableTraits>;
  static constexpr std::size_t kRingBytes = 4096;
  static constexpr Address kStackBytes = 512;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    AddModule(kText);
    ASSERT_TRUE(registry_.Open().ok());
    session_ = std::make_unique<Session<TableTraits>>(options_, registry_, code_, counters_, 23);
    registry_.BeginCollecting();
    const auto base = reinterpret_cast<Address>(stack_.data());
    thread_ = *registry_.Register({.id = 1, .stack = {.low = base, .high = base + kStackBytes}},
                                  "thread");
    thread_->next = RegistrationLinks();
    RegistrationLinks() = thread_;
    session_->Attach(*thread_);
  }
  void TearDown() override {
    if (session_ != nullptr) Finish();
    RegistrationLinks() = thread_->next;
    registry_.Unregister(thread_);
  }

  static void AddModule(Address start) {
    ManualPlatform::With([&](auto& state) {
      Module module;
      module.start = start;
      module.limit = start + kPieces * UnwindModules::kChunkBytes;
      module.path = "/program" + std::to_string(start);
      module.unwind_address = 0x900000;
      state.modules.push_back(module);
      ++state.module_version;
    });
  }

  [[nodiscard]] std::int64_t PeriodNs() const { return thread_->channel->timer_period_ns; }
  // The thread runs for a period, and its timer expires. The stack has kDepth frames with frame
  // pointers: the leaf runs at `leaf`, its callers in the pieces of the module at `callers`, one
  // after the other.
  void Deliver(Address leaf, Address callers = kText) {
    ManualPlatform::RunFor(1, PeriodNs());
    const auto base = reinterpret_cast<Address>(stack_.data());
    constexpr std::size_t kFirst = kRedZoneBytes / 8;
    for (std::size_t i = 0; i < kDepth; ++i) {
      const bool is_last = i + 1 == kDepth;
      stack_[kFirst + 2 * i] = is_last ? 0 : base + (kFirst + 2 * (i + 1)) * 8;
      stack_[kFirst + 2 * i + 1] =
          is_last ? 0 : callers + i % kPieces * UnwindModules::kChunkBytes + 0x100;
    }
    NativeRegisters registers;
    registers.pc = leaf;
    registers.sp = registers.fp = base + kFirst * 8;
    ChannelToken token = thread_->channel->token;
    EXPECT_TRUE(ManualPlatform::DeliverWith(token.Pack(), 1, &registers));
  }

  Profile Finish() {
    Profile profile = testing::FinishSession(*session_);
    session_.reset();
    return profile;
  }
  // The one stack of code that a profile holds, leaf first, and the CPU time that it stands for.
  struct OneStack {
    std::vector<Frame> frames;
    std::int64_t cpu_ns = 0;
  };
  static OneStack OnlyStackOf(const Profile& profile) {
    OneStack only;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      std::uint32_t stack = profile.samples[i].stack;
      if (profile.frames[profile.stacks[stack].frame].is_pseudo()) continue;  // [residual]
      EXPECT_TRUE(only.frames.empty()) << "more than one";
      for (; stack != 0; stack = profile.stacks[stack].parent)
        only.frames.push_back(profile.frames[profile.stacks[stack].frame]);
      only.cpu_ns = profile.Values(i)[1];
    }
    return only;
  }
  std::uint64_t Drops(DropReason reason) {
    return thread_->channel->counters.drops[static_cast<std::size_t>(reason)];
  }
  // Whole stacks, by what came to their end.
  std::uint64_t Captured() {
    return thread_->channel->counters.ends[static_cast<std::size_t>(StackEnd::kComplete)];
  }
  std::uint64_t Deferred() {
    return counters_.deferred_ends[static_cast<std::size_t>(StackEnd::kComplete)];
  }

  ProfilerOptions options_{.sampling = {.max_frames = 32, .trigger = SampleTrigger::kTimers}};
  ThreadRegistry<TableTraits> registry_{4, kRingBytes};
  CodeRegistry generated_;
  CollectorCounters counters_;
  LoadedCode<TableTraits> code_{generated_, counters_.code};
  std::unique_ptr<Session<TableTraits>> session_;
  Thread* thread_ = nullptr;
  alignas(16) std::array<Address, 1024> stack_{};
};

TEST_F(DeferredWalks, TheFirstSampleOfAFunctionIsWholeAndTheNextNeedsNoHelp) {
  Deliver(kText + 5);
  EXPECT_EQ(counters_.code.tables, 0u) << "nothing is built before it is executed";
  session_->Drain();
  EXPECT_EQ(counters_.code.tables, kPieces);
  EXPECT_EQ(Deferred(), 1u);
  EXPECT_EQ(Captured(), 0u);
  Deliver(kText + 5);
  session_->Drain();
  EXPECT_EQ(Deferred(), 1u);
  EXPECT_EQ(Captured(), 1u);
  const OneStack stack = OnlyStackOf(Finish());
  EXPECT_EQ(stack.frames.size(), kDepth);
  EXPECT_EQ(stack.cpu_ns, 2 * PeriodNs());
}

TEST_F(DeferredWalks, CodeInNoModuleIsAskedForOnce) {
  for (int i = 0; i < 3; ++i) {
    Deliver(0x70000000);
    session_->Drain();
  }
  EXPECT_EQ(Deferred(), 1u);
  EXPECT_EQ(Captured(), 2u);
}

TEST_F(DeferredWalks, CodeThatWasJustLoadedIsNoUnknownCode) {
  constexpr Address kPlugin = 0x50000000;
  AddModule(kPlugin);
  Deliver(kPlugin + 5);  // before any drain has seen it
  session_->Drain();
  const OneStack stack = OnlyStackOf(Finish());
  ASSERT_EQ(stack.frames.size(), kDepth);
  EXPECT_NE(stack.frames[0].module, Frame::kNoModule);
  EXPECT_EQ(counters_.code.tables, kPieces + 1) << "one of the plugin's pieces";
}

TEST_F(DeferredWalks, AWalkThroughCodeThatHasBeenUnloadedSinceEndsThere) {
  constexpr Address kPlugin = 0x50000000;
  AddModule(kPlugin);
  session_->Drain();
  const auto program_only = [](auto& state) {
    state.modules.pop_back();
    ++state.module_version;
  };
  Deliver(kText + 5, kPlugin);
  ManualPlatform::With(program_only);
  session_->Drain();
  const OneStack stack = OnlyStackOf(Finish());
  ASSERT_EQ(stack.frames.size(), 3u)
      << "by which rules the plugin's function was stepped from is not known any more";
  EXPECT_EQ(stack.frames[0].address, kText + 5);
  EXPECT_EQ(stack.frames[1].address, kPlugin + 0x100 - 1);
  EXPECT_TRUE(stack.frames[2].is_pseudo());
  EXPECT_EQ(stack.frames[2].address, static_cast<Address>(PseudoFrame::kNoUnwindInfo));
}

TEST_F(DeferredWalks, WhatHasTakenThePlaceOfUnloadedCodeDoesNotGuideItsWalks) {
  constexpr Address kPlugin = 0x50000000;
  AddModule(kPlugin);
  session_->Drain();
  Deliver(kText + 5, kPlugin);
  ManualPlatform::With([](auto& state) {
    state.modules.back().path = "/other";
    ++state.module_version;
  });
  Deliver(kPlugin + 5, kPlugin);
  session_->Drain();
  const Profile profile = Finish();
  std::multiset<std::size_t> depths;
  for (const ProfileSample& sample : profile.samples) {
    std::size_t depth = 0;
    for (std::uint32_t stack = sample.stack; stack != 0; stack = profile.stacks[stack].parent)
      ++depth;
    depths.insert(depth);
  }
  EXPECT_EQ(depths, (std::multiset<std::size_t>{2, 3})) << "both stacks with what they end at";
}

TEST_F(DeferredWalks, WhatCouldNotBeReadIsReadAgainWhenAPeriodEndsAndAfterSomeTimesNoMore) {
  Deliver(kText + 5);
  session_->Drain();
  EXPECT_EQ(counters_.code.refreshes, 1u);
  Stats stats;
  counters_.AddTo(stats);
  EXPECT_EQ(stats.unread_module, "/program" + std::to_string(kText));
  for (int period = 0; period < 10; ++period) {
    session_->TakePeriod();
    session_->Drain();
    Deliver(kText + 5);
    session_->Drain();
  }
  EXPECT_EQ(counters_.code.refreshes, 1u + LoadedCode<TableTraits>::kMaxRetries);
  EXPECT_EQ(Deferred(), 1u + LoadedCode<TableTraits>::kMaxRetries);
}

TEST_F(DeferredWalks, WhereTheRingIsTooFullForTheStackTheClockHasTheWeight) {
  std::int64_t delivered = 0;
  for (; Drops(DropReason::kNoTable) < 3; ++delivered) Deliver(kText + 5);
  EXPECT_EQ(Drops(DropReason::kRingFull), 0u) << "a larger ring would be full of such stacks, too";
  EXPECT_EQ(thread_->channel->cells[0].lost, 3 * PeriodNs());
  session_->Drain();
  Deliver(kText + 5);
  EXPECT_EQ(OnlyStackOf(Finish()).cpu_ns, (delivered + 1) * PeriodNs());
  EXPECT_EQ(Deferred(), static_cast<std::uint64_t>(delivered - 3));
}

// The stacks that it has come from there alone.
TEST_F(DeferredWalks, AStackThatIsTooLongForARecordKeepsItsWeightAndIsMarked) {
  thread_->channel->stack.high = thread_->channel->stack.low + sizeof(stack_);
  Deliver(kText + 5);
  EXPECT_EQ(Drops(DropReason::kNoTable), 0u);
  session_->Drain();
  EXPECT_EQ(counters_.samples, 1u);
  Deliver(kText + 5);
  EXPECT_EQ(Captured(), 1u);
  EXPECT_EQ(OnlyStackOf(Finish()).cpu_ns, 2 * PeriodNs());
}

TEST_F(DeferredWalks, AStackThatNobodyDrainedBeforeTheEndIsFinishedToo) {
  Deliver(kText + 5);
  EXPECT_EQ(OnlyStackOf(Finish()).frames.size(), kDepth);
  EXPECT_EQ(Deferred(), 1u);
}

TEST_F(DeferredWalks, TheRingsAreDrainedSoonerUntilTheProgramIsKnown) {
  Deliver(kText + 5);
  EXPECT_EQ(session_->Drain(), 1);
  Deliver(kText + 5);
  EXPECT_LT(session_->Drain(), 0.5);
}

}  // namespace
}  // namespace strobe::internal
