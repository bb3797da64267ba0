#include "strobe/runtime/channels/stack_slice.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <type_traits>
#include <vector>

#include "strobe/testing/fakes/fake_stack.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::internal {
namespace {

using testing::FakeStack;
using Chain = ChainUnwinder<CfiStep, FramePointerStep>;

// Two pieces of code; in each, function n takes n words of stack. The first kStop ends a stack,
// kForeign is in neither.
constexpr Address kFirstPiece = 0x10000;
constexpr Address kPieceBytes = 0x1000;
constexpr Address kFunctionBytes = 0x100;
constexpr Address kSliceBase = 0x7000;
constexpr Address kForeign = 0x90000;
constexpr std::size_t kLots = 1 << 20;

constexpr Address In(std::size_t piece, Address words) {
  return kFirstPiece + piece * kPieceBytes + words * kFunctionBytes + 0x80;
}

std::shared_ptr<const UnwindTable> Table() {
  std::vector<UnwindRow> rows = {{0, UnwindRule::Stop()}};
  for (std::uint32_t words = 1; words < 15; ++words) {
    rows.push_back({static_cast<std::uint32_t>(words * kFunctionBytes),
                    UnwindRule::Frame(UnwindRule::Kind::kFromSp, words, 1, 0)});
  }
  // The last counts from r12, which only the innermost frame has.
  const SpecialRule by_r12{.cfa = SpecialRule::Cfa::kOffset,
                           .cfa_base = SpecialRule::Base::kOther,
                           .cfa_other = 12,
                           .cfa_offset = 0,
                           .ra = {.where = SpecialRule::Where::kMemory,
                                  .base = SpecialRule::Base::kCfa,
                                  .other = 0,
                                  .offset = -8},
                           .fp = {}};
  rows.push_back({15 * kFunctionBytes, UnwindRule::Special(1)});
  return std::make_shared<UnwindTable>(static_cast<std::uint32_t>(kPieceBytes), rows,
                                       std::vector<SpecialRule>{SpecialRule(), by_r12});
}
UnwindModules PieceTables(bool first, bool second, bool is_complete = true) {
  return UnwindModules(
      {{kFirstPiece, kFirstPiece + kPieceBytes, first ? Table() : nullptr},
       {kFirstPiece + kPieceBytes, kFirstPiece + 2 * kPieceBytes, second ? Table() : nullptr}},
      is_complete);
}

struct Trace {
  std::vector<Address> frames;
  WalkResult walk;
};

Trace WalkWith(const UnwindModules& tables, const NativeRegisters& registers,
               const FakeStack& stack) {
  Trace trace{std::vector<Address>(64), {}};
  trace.walk = Chain(&tables).Unwind(registers, stack, trace.frames);
  trace.frames.resize(trace.walk.count);
  return trace;
}

bool IsCut(const std::vector<std::byte>& slice) {
  SliceHeader header;
  std::memcpy(&header, slice.data(), sizeof(header));
  return header.is_cut != 0;
}

// What a capture sends.
std::vector<std::byte> SliceOf(const Trace& pending, const NativeRegisters& registers,
                               const FakeStack& stack, std::size_t room = kLots) {
  EXPECT_TRUE(pending.walk.is_pending);
  const SliceWriter writer(registers, pending.walk.stop, stack, room);
  std::vector<std::byte> bytes(writer.bytes());
  bytes.resize(writer.Write(bytes.data(), 0, {}));
  return bytes;
}

Trace Finish(const UnwindModules& tables, const std::vector<std::byte>& slice,
             std::vector<Address> frames, std::size_t max_frames = 64) {
  Trace trace{std::move(frames), {}};
  trace.walk = FinishWalk(Chain(&tables), slice, trace.frames, max_frames);
  return trace;
}

class StackSliceTest : public ::testing::Test {
 protected:
  // kRedZoneBytes below sp are there, as on any stack; `words` from sp on.
  static FakeStack Stack(std::vector<Address> words) {
    words.insert(words.begin(), kRedZoneBytes / 8, 0);
    return FakeStack(kSliceBase - kRedZoneBytes, std::move(words));
  }
  const UnwindModules all_ = PieceTables(true, true);
  const NativeRegisters registers_ = [] {
    NativeRegisters registers;
    registers.pc = In(0, 2);
    registers.sp = kSliceBase;
    registers.fp = 1;
    return registers;
  }();
  // A function of the first piece, called by one of the second, by one of the first, by the
  // outermost of the second.
  const FakeStack stack_ = Stack({0, In(1, 3), 0, 0, In(0, 4), 0, 0, 0, In(1, 0)});
};

TEST_F(StackSliceTest, TheCollectorComesToWhatTheCaptureWouldHaveComeTo) {
  const Trace whole = WalkWith(all_, registers_, stack_);
  ASSERT_EQ(whole.walk.count, 4u);
  for (const UnwindModules& there : {PieceTables(false, false), PieceTables(true, false),
                                     PieceTables(false, true), PieceTables(false, false, false)}) {
    const Trace pending = WalkWith(there, registers_, stack_);
    EXPECT_LT(pending.walk.count, 4u);
    const Trace finished = Finish(all_, SliceOf(pending, registers_, stack_), pending.frames);
    EXPECT_EQ(finished.frames, whole.frames);
    EXPECT_EQ(finished.walk.end, StackEnd::kComplete);
    EXPECT_FALSE(finished.walk.is_pending);
  }
}

TEST_F(StackSliceTest, IsPendingAgainWhereTheNextTableIsMissing) {
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack_);
  const Trace again =
      Finish(PieceTables(true, false), SliceOf(pending, registers_, stack_), pending.frames);
  EXPECT_TRUE(again.walk.is_pending);
  EXPECT_EQ(again.walk.stop.pc, In(1, 3));
  EXPECT_EQ(again.frames.size(), 2u);
}

TEST_F(StackSliceTest, SaysWhyTheWalkEnded) {
  const UnwindModules none = PieceTables(false, false);
  const auto finish = [&](std::vector<Address> words, std::size_t max_frames = 64) {
    const FakeStack stack = Stack(std::move(words));
    const Trace pending = WalkWith(none, registers_, stack);
    return Finish(all_, SliceOf(pending, registers_, stack), pending.frames, max_frames).walk.end;
  };
  EXPECT_EQ(finish({0, In(1, 0)}), StackEnd::kComplete);
  EXPECT_EQ(finish({0, In(1, 3), 0}), StackEnd::kBroken)
      << "the caller's frame would lie above the stack";
  EXPECT_EQ(finish({0, In(1, 3), 0, 0, In(1, 0)}, 2), StackEnd::kTruncated)
      << "as many frames as allowed";
  EXPECT_EQ(finish({0, In(1, 15), 0}), StackEnd::kNoUnwindInfo) << "a register whose value is lost";
  EXPECT_EQ(finish({0, kForeign, 0}), StackEnd::kNoUnwindInfo)
      << "by frame pointers, of which there are none";
}

TEST_F(StackSliceTest, TheInnermostFramesRegistersComeAlong) {
  if (!std::is_same_v<NativeRegisters, X86_64Registers>)
    GTEST_SKIP() << "no function of this CPU is left by other registers";
  std::array<Address, kMaxGeneralRegisters> words{};
  words[12] = kSliceBase + 16;
  const NativeRegisters::GeneralRegisters general(words.data());
  NativeRegisters registers = registers_;
  registers.set_general_registers(&general);
  registers.pc = In(0, 15);
  const FakeStack stack = Stack({0, In(1, 0)});
  const Trace pending = WalkWith(PieceTables(false, true), registers, stack);
  const Trace finished = Finish(all_, SliceOf(pending, registers, stack), pending.frames);
  EXPECT_EQ(finished.frames, (std::vector<Address>{In(0, 15), In(1, 0) - 1}));
}

TEST_F(StackSliceTest, TheRedZoneMayLieBelowTheStack) {
  const FakeStack stack(kSliceBase, {0, In(1, 3), 0, 0, In(0, 4), 0, 0, 0, In(1, 0)});
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack);
  const std::vector<std::byte> slice = SliceOf(pending, registers_, stack);
  const Trace finished = Finish(all_, slice, pending.frames);
  EXPECT_FALSE(IsCut(slice));
  EXPECT_EQ(finished.frames, WalkWith(all_, registers_, stack).frames);
}

TEST_F(StackSliceTest, AWalkThatEndsOnAnotherStackIsACoroutines) {
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack_);
  const auto end_beside = [&](const StackBounds& own) {
    const SliceWriter writer(registers_, pending.walk.stop, stack_, kLots);
    std::vector<std::byte> slice(writer.bytes());
    slice.resize(writer.Write(slice.data(), 0, own));
    return Finish(all_, slice, pending.frames).walk.end;
  };
  EXPECT_EQ(end_beside({.low = kSliceBase, .high = stack_.end()}), StackEnd::kComplete);
  EXPECT_EQ(end_beside({}), StackEnd::kComplete) << "nothing is known of the thread's own";
  EXPECT_EQ(end_beside({.low = kSliceBase + 0x10000, .high = kSliceBase + 0x20000}),
            StackEnd::kCoroutine);
}

// A stack whose end nothing tells, as a coroutine's, or that of a thread that is not registered.
class EndlessStack : public FakeStack {
 public:
  explicit EndlessStack(FakeStack stack) : FakeStack(std::move(stack)) {}
  [[nodiscard]] Address end() const noexcept { return kUnknownStackEnd; }
};

TEST_F(StackSliceTest, IsCutWhereThereIsNoRoomForAStackWhoseEndNothingTells) {
  const EndlessStack stack(stack_);
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack);
  const std::size_t all_bytes = sizeof(SliceHeader) + stack_.end() - (kSliceBase - kRedZoneBytes);
  for (const std::size_t room : {kLots, all_bytes - 8}) {
    const SliceWriter writer(registers_, pending.walk.stop, stack, room);
    std::vector<std::byte> slice(writer.bytes());
    slice.resize(writer.Write(slice.data(), 0, {}));
    EXPECT_EQ(IsCut(slice), room != kLots);
    const Trace finished = Finish(all_, slice, pending.frames);
    EXPECT_EQ(finished.walk.end, room == kLots ? StackEnd::kComplete : StackEnd::kTruncated);
  }
}

TEST_F(StackSliceTest, SaysWhetherItGoesToTheStacksTop) {
  const Trace whole = WalkWith(all_, registers_, stack_);
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack_);
  const std::size_t all_bytes = SliceOf(pending, registers_, stack_).size();
  for (std::size_t room = 0; room < all_bytes + 16; ++room) {
    const std::vector<std::byte> slice = SliceOf(pending, registers_, stack_, room);
    EXPECT_LE(slice.size(), std::max(room, sizeof(SliceHeader)));
    const Trace finished = Finish(all_, slice, pending.frames);
    EXPECT_EQ(IsCut(slice), room < all_bytes);
    EXPECT_EQ(finished.walk.end, IsCut(slice) ? StackEnd::kTruncated : StackEnd::kComplete) << room;
    ASSERT_LE(finished.frames.size(), whole.frames.size());
    EXPECT_TRUE(std::equal(finished.frames.begin(), finished.frames.end(), whole.frames.begin()))
        << "what there is, is right";
  }
}

TEST_F(StackSliceTest, BeginsWhereTheWalkStoppedIfTheRestWouldNotFit) {
  std::vector<Address> words(kMaxSliceStackBytes / 8 + 1, 0);
  words[1] = In(0, 14);
  Address top = 1;
  while (top + 14 + 2 < words.size()) words[top += 14] = In(0, 14);
  words[top] = In(1, 1);
  words[top + 1] = In(1, 0);
  NativeRegisters registers = registers_;
  const FakeStack stack = Stack(words);
  std::vector<Address> frames(2000);
  const UnwindModules first = PieceTables(true, false);
  const WalkResult pending = Chain(&first).Unwind(registers, stack, frames);
  ASSERT_TRUE(pending.is_pending);
  frames.resize(pending.count);
  const auto slice = SliceOf({frames, pending}, registers, stack);
  EXPECT_LT(slice.size(), std::size_t{1024});
  const Trace finished = Finish(all_, slice, frames, 2000);
  EXPECT_EQ(finished.walk.end, StackEnd::kComplete);
  EXPECT_EQ(finished.frames.size(), frames.size() + 1);
}

TEST_F(StackSliceTest, HasTheNumberThatAStackTableHasForTheStack) {
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack_);
  const SliceWriter writer(registers_, pending.walk.stop, stack_, kLots);
  std::vector<std::byte> slice(writer.bytes());
  slice.resize(writer.Write(slice.data(), 77, {}));
  EXPECT_EQ(KeptNumberOf(slice), 77u);
  EXPECT_EQ(KeptNumberOf(std::span(slice).first(sizeof(SliceHeader) - 1)), 0u);
}

TEST_F(StackSliceTest, BytesThatNoCaptureWroteDoNoHarm) {
  const Trace pending = WalkWith(PieceTables(false, false), registers_, stack_);
  const std::vector<std::byte> slice = SliceOf(pending, registers_, stack_);
  EXPECT_EQ(Finish(all_, {}, pending.frames).walk.end, StackEnd::kBroken);
  EXPECT_EQ(Finish(all_, slice, {}).walk.end, StackEnd::kBroken)
      << "without the frame to go on from";
  std::mt19937 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes = slice;
    for (int j = 0; j < 8; ++j) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % (bytes.size() + 1));
    EXPECT_LE(Finish(all_, bytes, pending.frames).frames.size(), 64u);
  }
}

}  // namespace
}  // namespace strobe::internal
