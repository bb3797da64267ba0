#include "strobe/runtime/capture/capture.h"

#include <array>
#include <span>
#include <thread>
#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ManualPlatform;
using testing::ManualTraits;

// Each reading is 100 ns after the one before.
struct TickingClock {
  std::int64_t MonotonicNs() const { return now_ns += 100; }
  std::int64_t UnixTimeNs() const { return 0; }
  static inline std::int64_t now_ns = 0;
};
struct TickingTraits : ManualTraits {
  using Clock = TickingClock;
};
using Registry = ThreadRegistry<TickingTraits>;
using Registered = Registry::Thread;

constexpr Address kPc = 0x401234;

// One record of a ring.
struct Record {
  RecordHeader header;
  SampleContext context;
  std::int64_t time_ns = 0;
  std::vector<std::int64_t> weights;  // by cell
  std::vector<Address> frames;
};

// A thread as a session would have attached it, on the calling thread.
class CaptureTest : public ::testing::Test {
 protected:
  static constexpr std::size_t kRingBytes = 4096;

  void SetUp() override {
    ManualPlatform::Reset();
    registered_ = *registry_.Register({.id = 5, .stack = {}}, "thread");
    registry_.arena()->max_frames = 16;
    registry_.arena()->keeps_times = false;
    registry_.arena()->code().generation = 3;
    registered_->channel->is_active = true;
    registered_->next = RegistrationLinks();
    RegistrationLinks() = registered_;
    for (ProviderCell& cell : registered_->channel->cells) cell.Reset();
    registered_->channel->timer_period_ns = 1;
  }
  void TearDown() override {
    registered_->channel->is_active = false;
    RegistrationLinks() = registered_->next;
    registry_.Unregister(registered_);
  }

  std::uint64_t Payload(std::uint8_t provider = 0) {
    ChannelToken token = registered_->channel->token;
    token.provider = provider;
    return token.Pack();
  }
  std::vector<Record> Records() {
    std::vector<Record> records;
    for (auto bytes = registered_->channel->ring.Peek(); !bytes.empty();
         bytes = registered_->channel->ring.Peek()) {
      using Providers = TickingTraits::Providers;
      RecordView view;
      EXPECT_TRUE(ReadRecord(bytes, Providers::RecordedValueTypes(), view));
      records.push_back(
          {view.header, view.context, view.time_ns, {}, {view.frames.begin(), view.frames.end()}});
      for (const std::size_t column : Providers::CellColumns())
        records.back().weights.push_back(view.Amount(column));
      registered_->channel->ring.Pop();
    }
    return records;
  }
  std::uint64_t Drops(DropReason reason) {
    return registered_->channel->counters.drops[static_cast<std::size_t>(reason)];
  }
  bool IsMarked() {
    bool is_marked = false;
    registry_.VisitMarked([&](Registered& registered) { is_marked |= &registered == registered_; });
    return is_marked;
  }

  Registry registry_{4, kRingBytes};
  Registered* registered_ = nullptr;
};

TEST_F(CaptureTest, ATimersExpiriesBecomeARecordWithTheStack) {
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 3, kPc));
  const auto records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].weights, ElementsAre(3, 0));
  EXPECT_THAT(records[0].frames, ElementsAre(kPc));
  EXPECT_EQ(records[0].header.module_generation, 3u);
  EXPECT_EQ(records[0].header.end, StackEnd::kNoUnwindInfo);
  EXPECT_EQ(registered_->channel->cells[0].credited, 3);
  EXPECT_EQ(registered_->channel->counters.ends[static_cast<std::size_t>(StackEnd::kNoUnwindInfo)],
            1u);
  EXPECT_TRUE(IsMarked());
  EXPECT_FALSE(registered_->channel->is_capturing);
}

TEST_F(CaptureTest, ARecordHasItsTimeIfTheSessionKeepsTimes) {
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  registry_.arena()->keeps_times = true;
  const std::int64_t before_ns = TickingClock::now_ns;
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  const std::int64_t after_ns = TickingClock::now_ns;
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].header.flags, 0);
  EXPECT_EQ(records[1].header.flags, kRecordHasTime);
  EXPECT_GT(records[1].time_ns, before_ns);
  EXPECT_LE(records[1].time_ns, after_ns);
}

// A platform that stops threads from outside.
struct CopyingPlatform : ManualPlatform {
  static constexpr bool kCopiesStacks = true;
};
struct CopyingTraits : TickingTraits {
  using Platform = CopyingPlatform;
  using Unwinder = ChainUnwinder<FramePointerStep>;
};

TEST(CopyingCapture, AnotherThreadWalksTheCopyOfAStack) {
  ThreadRegistry<CopyingTraits> registry(4, 4096);
  RegisteredThread<CopyingTraits>& registered =
      **registry.Register({.id = 5, .stack = {}}, "thread");
  registry.arena()->max_frames = 16;
  registered.channel->is_active = true;
  registered.channel->cells[0].requested = 2;
  constexpr Address kBase = 0x70000;
  const std::vector<Address> words = {0, kBase + 0x18, 0x401004, kBase + 0x28, 0x401008, 0, 0};
  const CopiedStackMemory stack(kBase, std::as_bytes(std::span(words)));
  NativeRegisters registers;
  registers.pc = kPc;
  registers.sp = kBase;
  registers.fp = kBase + 8;
  const CaptureEntry& entry = CaptureEntryOf(registered.channel->token.arena);
  // This thread has no registration of its own.
  EXPECT_TRUE(entry.function.load()(
      entry.context,
      {.token = registered.channel->token, .registers = &registers, .stack = &stack}));
  const auto record = registered.channel->ring.Peek();
  RecordView view;
  using Providers = TickingTraits::Providers;
  ASSERT_TRUE(ReadRecord(record, Providers::RecordedValueTypes(), view));
  EXPECT_THAT(view.amounts, ElementsAre(2));
  EXPECT_EQ(view.Amount(Providers::ShownColumn(0)), 2);
  EXPECT_THAT(view.frames, ElementsAre(kPc, 0x401003, 0x401007));
  EXPECT_EQ(view.header.end, StackEnd::kComplete);
  registered.channel->is_active = false;
  registry.Unregister(&registered);
}

TEST_F(CaptureTest, TheContextOfTheThreadIsInItsRecords) {
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  registered_->channel->context.SetLabels(77);
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  const auto records = Records();
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].header.flags, 0) << "a record without context has no room for one";
  EXPECT_EQ(records[0].context, 0u);
  EXPECT_EQ(records[1].context, 77u);
  EXPECT_EQ(records[1].weights, records[0].weights);
  EXPECT_EQ(records[1].frames, records[0].frames);
}

TEST_F(CaptureTest, OneInterruptionServesEverybodyWhoWaits) {
  registered_->channel->cells[0].requested = 2;
  registered_->channel->cells[1].requested = 500;
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(0), 1, kPc));
  const auto records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].weights, ElementsAre(3, 500));
  EXPECT_EQ(registered_->channel->cells[1].credited, 500);
  EXPECT_EQ(registered_->channel->cells[1].requested, 0);
}

TEST_F(CaptureTest, ARequestThatWasServedAlreadyLeavesNoRecord) {
  registered_->channel->cells[1].requested = 500;
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(0), 1, kPc));
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(1), 0, kPc)) << "it is ours all the same";
  EXPECT_EQ(Records().size(), 1u);
}

TEST_F(CaptureTest, OneCaptureNotesTheClockAndTheRegistersIfThatIsWanted) {
  CaptureNote& note = registered_->channel->note;
  ASSERT_TRUE(ManualPlatform::Deliver(Payload(0), 1, kPc));
  EXPECT_EQ(note.cpu_ns, -1);
  ManualPlatform::RunFor(5, 777);
  registered_->channel->wants_note = true;
  ASSERT_TRUE(ManualPlatform::Deliver(Payload(0), 1, kPc));
  EXPECT_EQ(note.cpu_ns, 777);
  EXPECT_FALSE(registered_->channel->wants_note);
  ManualPlatform::RunFor(5, 1);
  ASSERT_TRUE(ManualPlatform::Deliver(Payload(0), 1, kPc));
  EXPECT_EQ(note.cpu_ns, 777) << "such a note costs a system call";
}

TEST_F(CaptureTest, ACaptureWithoutARecordNotesTheRegistersAndLeavesTheNoteWanted) {
  registry_.arena()->max_frames = 1000;  // the ring has no room for a record of so many
  ManualPlatform::RunFor(5, 777);
  registered_->channel->wants_note = true;
  NativeRegisters registers;
  registers.pc = kPc;
  registers.sp = 0x70F000;
  registers.fp = 0x70F100;
  ASSERT_TRUE(ManualPlatform::DeliverWith(Payload(), 1, &registers));
  const CaptureNote& note = registered_->channel->note;
  EXPECT_EQ(note.cpu_ns, 777);
  EXPECT_EQ(CaptureNote::Unpack(note.registers, registers.sp).fp, registers.fp);
  EXPECT_TRUE(registered_->channel->wants_note);
  ASSERT_TRUE(ManualPlatform::DeliverWith(Payload(), 1, nullptr)) << "and it needs registers";
  registry_.arena()->max_frames = 16;
  ASSERT_TRUE(ManualPlatform::DeliverWith(Payload(), 1, &registers));
  EXPECT_FALSE(registered_->channel->wants_note);
}

TEST_F(CaptureTest, WhatDoesNotFitIsLostAndInNoOtherRecord) {
  registry_.arena()->max_frames = 200;  // two such records fit
  std::int64_t delivered = 0;
  while (Drops(DropReason::kRingFull) < 3) {
    ASSERT_TRUE(ManualPlatform::Deliver(Payload(), 2, kPc));
    delivered += 2;
  }
  EXPECT_EQ(registered_->channel->cells[0].credited, delivered - 6);
  EXPECT_EQ(registered_->channel->cells[0].lost, 6);
  std::int64_t recorded = 0;
  for (const Record& record : Records()) recorded += record.weights[0];
  EXPECT_EQ(recorded, delivered - 6);
  registered_->channel->cells[1].requested = 50;
  ASSERT_TRUE(ManualPlatform::Deliver(Payload(1), 0, kPc));
  const auto records = Records();
  ASSERT_EQ(records.size(), 1u);
  EXPECT_THAT(records[0].weights, ElementsAre(0, 50)) << "another stack";
  EXPECT_EQ(registered_->channel->cells[0].lost, 6);
}

TEST_F(CaptureTest, WithoutRegistersTheWeightIsLost) {
  EXPECT_TRUE(ManualPlatform::DeliverWith(Payload(), 4, nullptr));
  EXPECT_TRUE(Records().empty());
  EXPECT_EQ(Drops(DropReason::kNoRegisters), 1u);
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  EXPECT_THAT(Records()[0].weights, ElementsAre(1, 0));
  EXPECT_EQ(registered_->channel->cells[0].lost, 4);
}

TEST_F(CaptureTest, ASignalOfAnEarlierUseIsStale) {
  const std::uint64_t before = Payload();
  ++registered_->channel->token.use;
  EXPECT_FALSE(ManualPlatform::Deliver(before, 1, kPc));
  EXPECT_TRUE(Records().empty());
  EXPECT_EQ(registered_->channel->cells[0].credited, 0);
  EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
}

TEST_F(CaptureTest, AChannelThatIsNotActiveIsStale) {
  registered_->channel->is_active = false;
  EXPECT_FALSE(ManualPlatform::Deliver(Payload(), 1, kPc));
  EXPECT_TRUE(Records().empty());
  EXPECT_FALSE(registered_->channel->is_capturing);
}

TEST_F(CaptureTest, ASignalForAnotherThreadsThreadIsNotServed) {
  std::thread([&] { EXPECT_FALSE(ManualPlatform::Deliver(Payload(), 1, kPc)); }).join();
  EXPECT_TRUE(Records().empty());
}

TEST_F(CaptureTest, AForgedIndexFindsNothing) {
  ChannelToken token = registered_->channel->token;
  token.index = 0xFFFFFF;
  EXPECT_FALSE(ManualPlatform::Deliver(token.Pack(), 1, kPc));
}

TEST_F(CaptureTest, EverySixteenthCallIsTimedForAll) {
  const std::uint32_t before = registered_->channel->counters.captures;
  for (std::uint32_t i = 0; i < 4 * kTimedCaptureInterval; ++i)
    EXPECT_TRUE(ManualPlatform::Deliver(Payload(), 1, kPc));
  EXPECT_EQ(registered_->channel->counters.captures - before, 4 * kTimedCaptureInterval);
  EXPECT_EQ(registered_->channel->counters.time_ns, 4 * 100 * kTimedCaptureInterval);
}

}  // namespace
}  // namespace strobe::internal
