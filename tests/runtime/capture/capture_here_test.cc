#include "strobe/runtime/capture/capture_here.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/arch/current_registers.h"
#include "strobe/platform/native.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ManualPlatform;
using testing::ManualTraits;

// An unwinder that is interrupted once for each count of `signals`, in the middle of its walk.
struct InterruptedUnwinder {
  template <StackMemory M>
  WalkResult Unwind(const NativeRegisters& registers, const M& /*memory*/,
                    std::span<Address> output) const noexcept {
    for (; signals > 0; --signals) EXPECT_TRUE(ManualPlatform::Deliver(payload, 3, 0x1));
    if (ends != nullptr) *ends = false;
    output[0] = registers.pc;
    return {.count = 1, .end = StackEnd::kComplete};
  }
  static inline int signals = 0;
  static inline std::uint64_t payload = 0;
  // What the walk ends a session by, or nullptr.
  static inline SharedFlag* ends = nullptr;
};
struct InterruptedTraits : ManualTraits {
  using Providers = ProviderList<CpuTimeProvider, testing::ArchetypeEventProvider>;
  using Unwinder = InterruptedUnwinder;
};

constexpr std::size_t kEvents = 1;

// As BasicProfiler::CaptureHere, with one object of so many bytes.
template <class Traits>
bool Allocate(ChannelArena<Traits>& arena, std::int64_t bytes, std::uint32_t skip = 0) {
  const std::array<std::int64_t, 2> amounts{1, bytes};
  const CurrentRegisters registers;
  return CaptureHere(arena, {.provider = kEvents, .amounts = amounts, .skip = skip},
                     registers.get());
}

// Any traits with two providers, of which the second brings events.
template <class Traits>
class Registered {
 public:
  explicit Registered(std::size_t ring_bytes) : registry_(4, ring_bytes) {
    control_ = *registry_.Register(Traits::Platform::CurrentThread(), "thread");
    registry_.arena()->max_frames = 64;
    for (ProviderCell& cell : control_->channel->cells) cell.Reset();
    control_->channel->timer_period_ns = 1;
    control_->channel->open_events = 1U << kEvents;
    control_->channel->is_active = true;
    control_->next = RegistrationLinks();
    RegistrationLinks() = control_;
  }
  ~Registered() {
    control_->channel->is_active = false;
    control_->channel->open_events = 0;
    RegistrationLinks() = control_->next;
    registry_.Unregister(control_);
  }

  RegisteredThread<Traits>& control() { return *control_; }
  ChannelArena<Traits>& arena() { return *registry_.arena(); }
  // Moves the records out of the ring; the sums of their weights are added to `sums`.
  std::vector<RecordHeader> Drain(std::array<std::int64_t, 3>& sums) {
    std::vector<RecordHeader> headers;
    for (auto bytes = control_->channel->ring.Peek(); !bytes.empty();
         bytes = control_->channel->ring.Peek()) {
      RecordView view;
      EXPECT_TRUE(ReadRecord(bytes, Traits::Providers::RecordedValueTypes(), view));
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] += view.Amount(Traits::Providers::CellColumns()[i]);
      headers.push_back(view.header);
      control_->channel->ring.Pop();
    }
    return headers;
  }

 private:
  ThreadRegistry<Traits> registry_;
  RegisteredThread<Traits>* control_;
};

TEST(CaptureHere, AnEventsAmountComesWithTheStackOfItsCaller) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  ASSERT_TRUE(Allocate(thread.arena(), 4096));
  std::array<std::int64_t, 3> sums{};
  const auto headers = thread.Drain(sums);
  ASSERT_EQ(headers.size(), 1u);
  EXPECT_THAT(sums, ElementsAre(0, 1, 4096));
  EXPECT_EQ(thread.control().channel->cells[2].credited, 4096);
  EXPECT_FALSE(thread.control().channel->is_capturing);
}

TEST(CaptureHere, ASignalWithinItIsServedAtItsEnd) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  ChannelToken token = thread.control().channel->token;
  token.provider = 0;
  InterruptedUnwinder::payload = token.Pack();
  InterruptedUnwinder::signals = 2;
  ASSERT_TRUE(Allocate(thread.arena(), 16));
  std::array<std::int64_t, 3> sums{};
  EXPECT_EQ(thread.Drain(sums).size(), 2u) << "the event's record, and one for both signals";
  EXPECT_THAT(sums, ElementsAre(6, 1, 16));
  EXPECT_FALSE(thread.control().channel->is_capturing);
}

TEST(CaptureHere, WhatWasCountedBeforeTheSessionsEndIsSaidToBe) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  ChannelToken token = thread.control().channel->token;
  token.provider = 0;
  InterruptedUnwinder::payload = token.Pack();
  InterruptedUnwinder::signals = 1;
  InterruptedUnwinder::ends = &thread.control().channel->is_active;
  EXPECT_TRUE(Allocate(thread.arena(), 16));
  InterruptedUnwinder::ends = nullptr;
  std::array<std::int64_t, 3> sums{};
  EXPECT_EQ(thread.Drain(sums).size(), 1u);
  EXPECT_THAT(sums, ElementsAre(0, 1, 16));
  EXPECT_FALSE(thread.control().channel->is_capturing);
}

TEST(CaptureHere, AnEventWithinACaptureIsLost) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  thread.control().channel->is_capturing = true;
  EXPECT_TRUE(Allocate(thread.arena(), 16));
  EXPECT_TRUE(thread.control().channel->is_capturing) << "the other capture's";
  thread.control().channel->is_capturing = false;
  std::array<std::int64_t, 3> sums{};
  EXPECT_TRUE(thread.Drain(sums).empty());
  EXPECT_TRUE(Allocate(thread.arena(), 1));
  thread.Drain(sums);
  EXPECT_THAT(sums, ElementsAre(0, 1, 1)) << "another stack";
  EXPECT_EQ(thread.control().channel->cells[1].lost, 1);
  EXPECT_EQ(thread.control().channel->cells[2].lost, 16);
  EXPECT_EQ(thread.control().channel->cells[2].credited, 1);
}

// The stack of the event is not where the thread is interrupted.
TEST(CaptureHere, ARequestWaitsForItsOwnInterruption) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  thread.control().channel->cells[0].requested = 5;
  ASSERT_TRUE(Allocate(thread.arena(), 16));
  std::array<std::int64_t, 3> sums{};
  EXPECT_EQ(thread.Drain(sums).size(), 1u);
  EXPECT_THAT(sums, ElementsAre(0, 1, 16));
  ChannelToken token = thread.control().channel->token;
  token.provider = 0;
  EXPECT_TRUE(ManualPlatform::Deliver(token.Pack(), 0, 0x1));
  thread.Drain(sums);
  EXPECT_THAT(sums, ElementsAre(5, 1, 16));
}

TEST(CaptureHere, AnEventThatFindsNoRoomIsInNoOtherRecord) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  std::int64_t taken = 0;
  while (thread.control().channel->cells[2].lost == 0) {
    ASSERT_TRUE(Allocate(thread.arena(), 16));
    taken += 16;
  }
  std::array<std::int64_t, 3> sums{};
  thread.Drain(sums);
  EXPECT_EQ(sums[2], taken - 16);
  ChannelToken token = thread.control().channel->token;
  token.provider = 0;
  EXPECT_TRUE(ManualPlatform::Deliver(token.Pack(), 3, 0x1));
  EXPECT_TRUE(Allocate(thread.arena(), 1));
  thread.Drain(sums);
  EXPECT_THAT(sums, ElementsAre(3, taken / 16, taken - 16 + 1));
}

TEST(CaptureHere, WithoutARegistrationOrASessionNothingIsCounted) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  std::thread([&] { EXPECT_FALSE(Allocate(thread.arena(), 16)); }).join();
  thread.control().channel->open_events = 0;
  EXPECT_FALSE(Allocate(thread.arena(), 16));
  EXPECT_FALSE(thread.control().channel->is_capturing);
  EXPECT_EQ(thread.control().channel->cells[1].requested, 0);
  std::array<std::int64_t, 3> sums{};
  EXPECT_TRUE(thread.Drain(sums).empty());
}

// The shared channels of a session, in an arena where the calling thread is not registered.
class Unregistered {
 public:
  Unregistered() {
    EXPECT_TRUE(registry_.Open().ok());
    arena().max_frames = 64;
    for (std::uint32_t i = 0; i < ChannelArena<InterruptedTraits>::kSharedChannels; ++i) {
      Channel(i).open_events = 1U << kEvents;
      Channel(i).is_active = true;
    }
  }
  ~Unregistered() {
    arena().VisitAll([](SampleChannel<InterruptedTraits>& channel) {
      channel.is_active = false;
      channel.is_capturing = false;
      channel.open_events = 0;
      for (ProviderCell& cell : channel.cells) cell.Reset();
    });
  }

  ChannelArena<InterruptedTraits>& arena() { return *registry_.arena(); }
  SampleChannel<InterruptedTraits>& Channel(std::uint32_t i) {
    SampleChannel<InterruptedTraits>* const channel = arena().Find(i);
    if (channel == nullptr) std::abort();  // or GCC warns of what it thinks might happen
    return *channel;
  }
  // The bytes in the channel's only record; -1 if it has none.
  std::int64_t BytesIn(std::uint32_t i, SampleContext* context = nullptr) {
    RecordView view;
    if (!ReadRecord(Channel(i).ring.Peek(), InterruptedTraits::Providers::RecordedValueTypes(),
                    view))
      return -1;
    if (context != nullptr) *context = view.context;
    return view.Amount(InterruptedTraits::Providers::CellColumns()[2]);
  }

 private:
  ThreadRegistry<InterruptedTraits> registry_{4, 4096};
};

TEST(CaptureHere, AThreadThatIsNotRegisteredHasASharedChannel) {
  ManualPlatform::Reset();
  Unregistered thread;
  const std::uint64_t labels_before = OwnContext().labels();
  SetOwnLabels(7);
  EXPECT_TRUE(Allocate(thread.arena(), 16));
  SetOwnLabels(labels_before);
  SampleContext context;
  EXPECT_EQ(thread.BytesIn(0, &context), 16);
  EXPECT_EQ(context.labels(), 7u);
  EXPECT_FALSE(thread.Channel(0).is_capturing);
  EXPECT_EQ(thread.BytesIn(1), -1);
}

TEST(CaptureHere, ThreadsThatAreNotRegisteredDoNotWaitForEachOther) {
  ManualPlatform::Reset();
  Unregistered thread;
  constexpr std::uint32_t kLast = ChannelArena<InterruptedTraits>::kSharedChannels - 1;
  for (std::uint32_t i = 0; i < kLast; ++i) thread.Channel(i).is_capturing = true;
  EXPECT_TRUE(Allocate(thread.arena(), 16));
  EXPECT_EQ(thread.BytesIn(kLast), 16);
  thread.Channel(kLast).is_capturing = true;
  EXPECT_TRUE(Allocate(thread.arena(), 32));
  EXPECT_EQ(thread.Channel(0).cells[2].lost, 32) << "the thread that uses it has another stack";
}

TEST(CaptureHere, WithoutASessionAThreadThatIsNotRegisteredIsRefused) {
  ManualPlatform::Reset();
  Unregistered thread;
  for (std::uint32_t i = 0; i < ChannelArena<InterruptedTraits>::kSharedChannels; ++i)
    thread.Channel(i).open_events = 0;
  EXPECT_FALSE(Allocate(thread.arena(), 16));
  EXPECT_FALSE(thread.Channel(0).is_capturing);
}

TEST(CaptureHere, WhileTheCollectorFreesMemoryAnEventIsLost) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  thread.control().channel->is_active = false;
  EXPECT_TRUE(Allocate(thread.arena(), 16));
  std::array<std::int64_t, 3> sums{};
  EXPECT_TRUE(thread.Drain(sums).empty());
  thread.control().channel->is_active = true;
  EXPECT_TRUE(Allocate(thread.arena(), 1));
  thread.Drain(sums);
  EXPECT_THAT(sums, ElementsAre(0, 1, 1));
  EXPECT_EQ(thread.control().channel->cells[2].lost, 16);
}

TEST(CaptureHere, TheRecordSaysHowManyFramesToLeaveOut) {
  ManualPlatform::Reset();
  Registered<InterruptedTraits> thread(4096);
  ASSERT_TRUE(Allocate(thread.arena(), 16, 3));
  RecordView view;
  ASSERT_TRUE(ReadRecord(thread.control().channel->ring.Peek(),
                         InterruptedTraits::Providers::RecordedValueTypes(), view));
  EXPECT_EQ(view.skip, 3u);
  EXPECT_EQ(view.Amount(InterruptedTraits::Providers::CellColumns()[2]), 16);
}

struct StormTraits : ManualTraits {
  using Providers = ProviderList<CpuTimeProvider, testing::ArchetypeEventProvider>;
  using Platform = NativePlatform;
  using Unwinder = ChainUnwinder<FramePointerStep>;
};

// A thread that captures in a tight loop while another one interrupts it as fast as it can: to the
// unit, all that was brought and requested is recorded, lost or still requested.
TEST(CaptureHere, NothingIsLostUnderAStormOfInterruptions) {
  constexpr std::int64_t kInterruptions = 20000;
  ASSERT_TRUE(NativePlatform::Available().ok());
  const int signal = NativePlatform::DefaultSignal();
  ASSERT_TRUE(NativePlatform::InstallHandler(signal).ok());
  Registered<StormTraits> thread(1 << 16);
  const std::uint64_t id = NativePlatform::CurrentThreadId();
  RegisteredThread<StormTraits>& registered = thread.control();
  std::atomic<bool> is_over{false};
  std::array<std::int64_t, 3> sums{};
  std::thread interrupter([&] {
    for (std::int64_t i = 0; i < kInterruptions; ++i) {
      registered.channel->cells[0].requested.fetch_add(1);
      NativePlatform::Interrupt(id, registered.channel->token.Pack(), signal, false);
      if (i % 16 == 0) thread.Drain(sums);
    }
    is_over = true;
  });
  std::int64_t events = 0;
  while (!is_over) {
    EXPECT_TRUE(Allocate(thread.arena(), 8));
    ++events;
  }
  interrupter.join();
  thread.Drain(sums);
  const auto waiting = [&](std::size_t cell) {
    return registered.channel->cells[cell].requested.load() +
           registered.channel->cells[cell].lost.load();
  };
  EXPECT_EQ(sums[0] + waiting(0), kInterruptions);
  EXPECT_EQ(sums[1] + waiting(1), events);
  EXPECT_EQ(sums[2] + waiting(2), 8 * events);
  EXPECT_GT(sums[1], 0);
}

}  // namespace
}  // namespace strobe::internal
