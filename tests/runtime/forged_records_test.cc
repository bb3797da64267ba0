// A ring may lie in memory that another process can write: what becomes of records that no capture
// wrote, and of those after them.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "manual_traits.h"
#include "strobe/core/record.h"
#include "strobe/runtime/session/session.h"

namespace strobe::internal {
namespace {

using testing::ManualClock;
using testing::ManualPlatform;
using testing::ManualTraits;

class ForgedRecords : public ::testing::Test {
 protected:
  using Thread = RegisteredThread<ManualTraits>;
  using Sums = std::map<std::string, std::int64_t>;

  void SetUp() override {
    ManualPlatform::Reset();
    ManualClock::Reset();
    ASSERT_TRUE(registry_.Open().ok());
    session_ = std::make_unique<Session<ManualTraits>>(options_, registry_, code_, counters_, 23);
    registry_.BeginCollecting();
    thread_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    session_->Attach(*thread_);
  }
  void TearDown() override { registry_.Unregister(thread_); }

  Profile Finish() { return testing::FinishSession(*session_); }
  // A record of one sample, whatever its header says, with these frames, leaf first; it is credited
  // as a capture does. Where it begins.
  std::byte* Write(RecordHeader header, const std::vector<Address>& frames) {
    const std::size_t bytes = RecordBytes(1, frames.size());
    std::byte* const record = thread_->channel->ring.Reserve(bytes);
    const std::int64_t weight = 1;
    std::memcpy(record, &header, sizeof(header));
    std::memcpy(record + sizeof(header), &weight, sizeof(weight));
    std::memcpy(record + RecordBytes(1, 0), frames.data(), frames.size() * sizeof(Address));
    thread_->channel->ring.Commit(bytes);
    thread_->channel->cells[0].credited.fetch_add(1);
    ManualPlatform::RunFor(1, 1);
    registry_.arena()->Mark(*thread_->channel);
    return record;
  }
  static RecordHeader HeaderOf(std::size_t frame_count, std::size_t shared_count = 0) {
    return {.module_generation = 1,
            .frame_count = static_cast<std::uint16_t>(frame_count),
            .shared_count = static_cast<std::uint16_t>(shared_count),
            .amounts = 0b10};
  }
  // Root first, "400001 400002", and its nanoseconds.
  static Sums TimeByStack(const Profile& profile) {
    Sums sums;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      std::string text;
      for (std::uint32_t stack = profile.samples[i].stack; stack != 0;
           stack = profile.stacks[stack].parent) {
        const Frame& frame = profile.frames[profile.stacks[stack].frame];
        const auto name =
            frame.is_pseudo()
                ? std::string(PseudoFrameName(static_cast<PseudoFrame>(frame.address)))
                : absl::StrCat(absl::Hex(frame.address));
        text = absl::StrCat(name, text.empty() ? "" : " ", text);
      }
      sums[text] += profile.Values(i)[1];
    }
    return sums;
  }

  ProfilerOptions options_;
  ThreadRegistry<ManualTraits> registry_{4, 4096};
  CodeRegistry generated_;
  CollectorCounters counters_;
  LoadedCode<ManualTraits> code_{generated_, counters_.code};
  std::unique_ptr<Session<ManualTraits>> session_;
  Thread* thread_ = nullptr;
};

TEST_F(ForgedRecords, WhatNoCaptureWroteIsPassedOver) {
  Write(HeaderOf(1), {0x400000});
  Write(HeaderOf(2), {0x400000});  // more frames than bytes
  RecordHeader header = HeaderOf(1);
  // Value types that no capture writes, more amounts than there are words, words without a name.
  for (const std::size_t amounts : {0, 0b01, 0b110, 0xFFFF}) {
    header.amounts = static_cast<std::uint16_t>(amounts);
    Write(header, {0x400000});
  }
  header = HeaderOf(1);
  for (const std::size_t flags : {1, 2, 3, 4, 0xFF}) {
    header.flags = static_cast<std::uint8_t>(flags);
    Write(header, {0x400000});
  }
  for (const std::size_t end : {kStackEndCount, kStackEndCount + 1}) {  // that have no name
    header = HeaderOf(1);
    header.end = static_cast<StackEnd>(end);
    Write(header, {0x400000});
  }
  session_->Drain();
  EXPECT_EQ(counters_.samples.load(), 1u);
  EXPECT_EQ(counters_.unreadable.load(), 12u);
  EXPECT_EQ(TimeByStack(Finish()), (Sums{{"400000", 1}, {"[lost]", 12}}));
}

// A context that no set of labels has is a row of its own all the same.
TEST_F(ForgedRecords, AnUnknownContextIsTheOverflowSet) {
  RecordHeader header = HeaderOf(1);
  Write(header, {0x400000});
  header = HeaderOf(0, /*shared_count=*/1);
  header.flags = kRecordHasContext;
  std::byte* const record = thread_->channel->ring.Reserve(RecordBytes(2, 0));
  const std::array<std::int64_t, 2> words{-1, 5};
  std::memcpy(record, &header, sizeof(header));
  std::memcpy(record + sizeof(header), words.data(), sizeof(words));
  thread_->channel->ring.Commit(RecordBytes(2, 0));
  thread_->channel->cells[0].credited.fetch_add(5);
  ManualPlatform::RunFor(1, 5);
  session_->Drain();
  const Profile profile = Finish();
  ASSERT_EQ(profile.label_sets.size(), 2u);
  EXPECT_EQ(profile.label_sets[1].Text("labels"), "[labels over limit]");
  EXPECT_EQ(profile.samples[0].stack, profile.samples[1].stack);
  EXPECT_EQ(profile.Values(0)[1], 1);
  EXPECT_EQ(profile.Values(1)[1], 5);
}

TEST_F(ForgedRecords, NoStackHangsUnderTheRootsOfOneThatCouldNotBeRead) {
  Write(HeaderOf(3), {0x400003, 0x400002, 0x400001});
  Write(HeaderOf(4), {0x400030, 0x400020, 0x400010});  // not a record
  thread_->channel->memo_is_stale = false;
  Write(HeaderOf(1, 2), {0x400040});  // shares unknown frames
  session_->Drain();
  EXPECT_TRUE(thread_->channel->memo_is_stale) << "the next stack would go on sharing with it";
  EXPECT_EQ(TimeByStack(Finish()),
            (Sums{{"400001 400002 400003", 1}, {"[overflow]", 1}, {"[lost]", 1}}));
}

TEST_F(ForgedRecords, NoStackHangsUnderTheRootsOfOneThatTheRingLost) {
  Write(HeaderOf(3), {0x400003, 0x400002, 0x400001});
  session_->Drain();
  std::byte* const record = Write(HeaderOf(3), {0x400030, 0x400020, 0x400010});
  std::memset(record - 8, 0xFF, 8);  // its framing
  thread_->channel->memo_is_stale = false;
  session_->Drain();
  EXPECT_TRUE(thread_->channel->memo_is_stale);
  Write(HeaderOf(1, 2), {0x400040});  // a capture that was under way meanwhile
  session_->Drain();
  EXPECT_EQ(TimeByStack(Finish()),
            (Sums{{"400001 400002 400003", 1}, {"[overflow]", 1}, {"[lost]", 1}}));
}

}  // namespace
}  // namespace strobe::internal
