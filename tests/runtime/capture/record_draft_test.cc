#include "strobe/runtime/capture/record_draft.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using testing::ManualTraits;
using Providers = ManualTraits::Providers;

constexpr Address kBase = 0x70000;
constexpr std::size_t kDraftRingBytes = 4096;

class RecordDraftTest : public ::testing::Test {
 protected:
  void SetUp() override {
    testing::ManualPlatform::Reset();
    slot_ = *registry_.Register({.id = 5, .stack = {}}, "thread");
    arena().max_frames = 16;
    arena().code().generation = 3;
  }
  void TearDown() override { registry_.Unregister(slot_); }

  ChannelArena<ManualTraits>& arena() { return *registry_.arena(); }
  SampleChannel<ManualTraits>& channel() { return *slot_->channel; }

  // A draft in the ring, of a stack of two frames.
  RecordDraft Begin(const RecordWordValues& values, std::span<const std::int64_t> weights) {
    std::size_t words = 0;
    const RecordHeader header = MakeHeader(arena(), values, weights, words);
    RecordDraft draft{.bytes = channel().ring.Reserve(RecordBytes(words, 16)),
                      .head_bytes = RecordBytes(words, 0)};
    if (draft.bytes == nullptr) return draft;
    new (draft.bytes) RecordHeader(header);
    draft.header().frame_count = 2;
    const std::span<Address> frames = FramesOf(arena(), draft);
    EXPECT_EQ(frames.size(), 16u) << "as many as a walk may find";
    frames[0] = 0x401000;
    frames[1] = 0x402000;
    return draft;
  }
  // Adds a slice of `stack`, whose walk lacked a table at its first word.
  void AddSliceOf(std::span<const Address> stack, RecordDraft& draft) {
    NativeRegisters registers;
    registers.pc = 0x401000;
    registers.sp = kBase;
    AddSlice(arena(), channel(), registers, {.pc = 0x402000, .sp = kBase},
             CopiedStackMemory(kBase, std::as_bytes(stack)), draft);
  }
  RecordView Commit(const RecordDraft& draft) {
    const RecordHeader& header = draft.header();
    channel().ring.Commit(RecordBytes(RecordWords(header), header.frame_count, header.slice_bytes));
    RecordView view;
    EXPECT_TRUE(ReadRecord(channel().ring.Peek(), Providers::RecordedValueTypes(), view));
    return view;
  }

  ThreadRegistry<ManualTraits> registry_{4, kDraftRingBytes};
  RegisteredThread<ManualTraits>* slot_ = nullptr;
};

TEST_F(RecordDraftTest, TheCollectorReadsWhatWasWritten) {
  const RecordWordValues values{.context = 77, .time_ns = 1234, .skip = 1};
  const std::array<std::int64_t, 2> weights{3, 500};
  const RecordDraft draft = Begin(values, weights);
  WriteWords(draft.bytes + sizeof(RecordHeader), values, weights);
  const RecordView view = Commit(draft);
  EXPECT_EQ(view.header.module_generation, 3u);
  EXPECT_EQ(view.context, 77u);
  EXPECT_EQ(view.time_ns, 1234);
  EXPECT_EQ(view.skip, 1u);
  EXPECT_EQ(view.Amount(Providers::ShownColumn(0)), 3);
  EXPECT_EQ(view.Amount(Providers::ShownColumn(1)), 500);
  EXPECT_THAT(view.frames, ElementsAre(0x401000, 0x402000));
}

TEST_F(RecordDraftTest, ATraceIsThreeWordsMore) {
  const SampleContext context(7, {.trace_id = 1, .span_id = 2, .local_root_span_id = 3});
  const RecordWordValues values{.context = context, .skip = 4};
  const std::array<std::int64_t, 2> weights{0, 500};
  const RecordDraft draft = Begin(values, weights);
  EXPECT_EQ(draft.head_bytes, RecordBytes(6, 0));
  WriteWords(draft.bytes + sizeof(RecordHeader), values, weights);
  const RecordView view = Commit(draft);
  EXPECT_EQ(view.context, context);
  EXPECT_EQ(view.skip, 4u);
  EXPECT_THAT(view.amounts, ElementsAre(500));
  EXPECT_THAT(view.frames, ElementsAre(0x401000, 0x402000));
}

TEST_F(RecordDraftTest, WordsAndAmountsThatAreZeroTakeNoRoom) {
  const std::array<std::int64_t, 2> weights{0, 500};
  const RecordDraft draft = Begin({}, weights);
  EXPECT_EQ(draft.head_bytes, RecordBytes(1, 0));
  WriteWords(draft.bytes + sizeof(RecordHeader), {}, weights);
  const RecordView view = Commit(draft);
  EXPECT_THAT(view.amounts, ElementsAre(500));
  EXPECT_EQ(view.Amount(Providers::ShownColumn(1)), 500);
}

TEST_F(RecordDraftTest, ASliceFollowsTheFrames) {
  const std::array<std::int64_t, 2> weights{3, 500};
  RecordDraft draft = Begin({.context = 77}, weights);
  draft.kept_number = NumberOfCapture(channel()) + 9;
  const std::vector<Address> stack = {1, 2, 3, 4};
  AddSliceOf(stack, draft);
  ASSERT_NE(draft.bytes, nullptr);
  WriteWords(draft.bytes + sizeof(RecordHeader), {.context = 77}, weights);
  const RecordView view = Commit(draft);
  EXPECT_EQ(view.context, 77u);
  EXPECT_THAT(view.frames, ElementsAre(0x401000, 0x402000));
  ASSERT_EQ(view.slice.size(), sizeof(SliceHeader) + stack.size() * sizeof(Address));
  EXPECT_EQ(KeptNumberOf(view.slice), draft.kept_number);
  const std::span<const std::byte> copy = view.slice.subspan(sizeof(SliceHeader));
  EXPECT_TRUE(std::ranges::equal(copy, std::as_bytes(std::span(stack))));
}

TEST_F(RecordDraftTest, OfAStackLongerThanTheRingThereIsWhatFits) {
  const std::array<std::int64_t, 2> weights{3, 500};
  RecordDraft draft = Begin({}, weights);
  AddSliceOf(std::vector<Address>(kDraftRingBytes, 1), draft);
  ASSERT_NE(draft.bytes, nullptr);
  WriteWords(draft.bytes + sizeof(RecordHeader), {}, weights);
  const RecordView view = Commit(draft);
  EXPECT_THAT(view.amounts, ElementsAre(3, 500));
  EXPECT_GT(view.slice.size(), kDraftRingBytes / 2);
}

TEST_F(RecordDraftTest, WithoutRoomForTheSliceThereIsNoRecord) {
  const std::array<std::int64_t, 2> weights{3, 500};
  static_cast<void>(Commit(Begin({}, weights)));
  RecordDraft draft = Begin({}, weights);
  AddSliceOf(std::vector<Address>(kDraftRingBytes, 1), draft);
  EXPECT_EQ(draft.bytes, nullptr);
  channel().ring.Pop();
  EXPECT_EQ(channel().ring.used_bytes(), 0u);
}

}  // namespace
}  // namespace strobe::internal
