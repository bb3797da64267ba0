// A session that a test plays on one thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "manual_traits.h"
#include "strobe/base/visibility.h"
#include "strobe/runtime/capture/outside_walk.h"
#include "strobe/runtime/session/session.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

using testing::kCpu;
using testing::kMs;
using testing::kSamples;
using testing::kWall;
using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

// Holds a walk in the middle for as long as a test says, and finds what a test says.
struct HoldingUnwinder : testing::ArchetypeUnwinder {
  static inline constinit std::atomic<bool> is_to_hold{false};
  static inline constinit std::atomic<bool> is_holding{false};
  enum class Finds { kNoEnd, kEnd, kEndByFramePointer };
  static inline constinit std::atomic<Finds> finds{Finds::kNoEnd};
  template <StackMemory M>
  WalkResult Unwind(const NativeRegisters& registers, const M& memory,
                    std::span<Address> output) const noexcept {
    for (; is_to_hold.load(); is_holding.store(true)) {
    }
    WalkResult walk = testing::ArchetypeUnwinder::Unwind(registers, memory, output);
    if (finds == Finds::kEnd) walk.end = StackEnd::kComplete;
    if (finds != Finds::kEndByFramePointer) return walk;
    walk.end = registers.fp == kUnknownRegister ? StackEnd::kBroken : StackEnd::kComplete;
    if (walk.end == StackEnd::kComplete) output[walk.count++] = registers.fp;
    return walk;
  }
};
struct SessionTraits : ManualTraits {
  using Unwinder = HoldingUnwinder;
};

// A session played on one thread: the test is the kernel, every registered thread, and the
// collector.
class SessionTest : public ::testing::Test {
 protected:
  using Registry = ThreadRegistry<SessionTraits>;
  using Thread = Registry::Thread;
  using Sums = std::map<std::string, std::int64_t>;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    HoldingUnwinder::finds = HoldingUnwinder::Finds::kNoEnd;
    ASSERT_TRUE(registry_.Open().ok());
  }
  void TearDown() override {
    if (session_ != nullptr) Finish();
    std::vector<Thread*> live;
    registry_.CopyLive(live);
    for (Thread* thread : live) Unlink(thread);
    for (Thread* thread : live) registry_.Unregister(thread);
  }

  void Begin(SamplingOptions sampling = {.wall_frequency_hz = 10,
                                         .trigger = SampleTrigger::kTimers}) {
    options_.sampling = std::move(sampling);
    session_ = std::make_unique<Session<SessionTraits>>(options_, registry_, code_, counters_, 23);
    registry_.BeginCollecting();
    session_->Begin();
    session_->Poll({}, Now());
  }
  Thread* Register(std::uint64_t id, const std::string& name, const StackBounds& stack = {}) {
    Thread* thread = *registry_.Register({.id = id, .stack = stack}, name);
    thread->next = RegistrationLinks();
    RegistrationLinks() = thread;
    if (session_ != nullptr) session_->Attach(*thread);
    return thread;
  }
  void Unregister(Thread* thread) {
    thread->is_ending = true;
    if (session_ != nullptr) session_->Detach(*thread);
    Unlink(thread);
    registry_.Unregister(thread);
  }
  static void Unlink(Thread* thread) {
    RegistrationLink** link = &RegistrationLinks();
    while (*link != thread) link = &(*link)->next;
    *link = thread->next;
  }

  static std::int64_t Now() { return ManualClock().MonotonicNs(); }
  // The thread runs; its timer expires as the kernel's would, all expiries of this run in one
  // signal.
  void Run(Thread* thread, std::int64_t cpu_ns, Address pc = 0x400000) {
    ManualPlatform::RunFor(thread->channel->thread_id, cpu_ns);
    ManualClock::Advance(cpu_ns);
    const auto timer = ManualPlatform::With([&](auto& state) {
      const auto at = state.timers.find(thread->channel->thread_id);
      return at == state.timers.end() ? ManualPlatform::Timer() : at->second;
    });
    if (!timer.is_started) return;
    const std::int64_t used_ns =
        ManualPlatform::ThreadCpuTimeNs(thread->channel->thread_id) - thread->attach_cpu_ns;
    const std::int64_t expiries =
        used_ns < timer.first_ns ? 0 : 1 + (used_ns - timer.first_ns) / timer.period_ns;
    std::int64_t& done = expiries_[thread];
    if (expiries == done) return;
    EXPECT_TRUE(
        ManualPlatform::Deliver(timer.payload, expiries - std::exchange(done, expiries), pc));
  }
  Profile Take() { return ProfileOf(session_->TakePeriod(), session_->columns()); }
  static Profile ProfileOf(RecordedPeriod period, const RecordingColumns& columns) {
    Profile profile;
    profile.value_types = ValueTypesOf(columns, ManualTraits::Providers::AllValueTypes());
    strobe::FillProfile(std::move(period.samples), profile);
    return profile;
  }
  Profile Finish() {
    session_->End();
    session_->FinishAll();
    Profile profile = Take();
    session_.reset();
    return profile;
  }

  ProfilerOptions options_;
  Registry registry_{100, 32 * 1024};
  CodeRegistry generated_;
  CollectorCounters counters_;
  LoadedCode<SessionTraits> code_{generated_, counters_.code};
  std::unique_ptr<Session<SessionTraits>> session_;
  std::map<Thread*, std::int64_t> expiries_;
};

}  // namespace internal
}  // namespace strobe
