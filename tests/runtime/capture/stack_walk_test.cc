#include "strobe/runtime/capture/stack_walk.h"

#include <array>
#include <cstring>
#include <span>
#include <utility>
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

constexpr Address kWalkedPc = 0x401234;

// A thread off its stack, and back.
struct ForeignStack {
  static constexpr Address kBase = 0x70000;
  static inline std::vector<Address> words;
  static std::size_t ReadStack(std::uint64_t address, std::span<std::uint8_t> bytes) noexcept {
    const auto all = std::as_bytes(std::span(words));
    if (address != kBase || bytes.size() < all.size()) return 0;
    std::memcpy(bytes.data(), all.data(), all.size());
    return all.size();
  }
};
struct ForeignPlatform : ManualPlatform {
  static std::size_t ReadStack(std::uint64_t address, std::span<std::uint8_t> bytes) noexcept {
    return ForeignStack::ReadStack(address, bytes);
  }
};
struct ForeignTraits : ManualTraits {
  using Platform = ForeignPlatform;
  using Unwinder = ChainUnwinder<FramePointerStep>;
};

TEST(StackWalk, AStackThatIsNotTheThreadsOwnIsWalkedInACopy) {
  ThreadRegistry<ForeignTraits> registry(4, 4096);
  RegisteredThread<ForeignTraits>& slot = **registry.Register({.id = 5, .stack = {}}, "thread");
  registry.arena()->max_frames = 16;
  std::vector<Address> own = {0, 0, 0, 0, 0, 0x402004, 0, 0};
  const auto own_low = reinterpret_cast<Address>(own.data());
  own[4] = own_low + 48;
  slot.channel->stack = {.low = own_low, .high = own_low + own.size() * 8};
  const auto walk = [&](Address pc, Address sp, Address fp) {
    std::array<Address, 32> bytes{};
    NativeRegisters registers;
    registers.pc = pc;
    registers.sp = sp;
    registers.fp = fp;
    RecordDraft draft{.bytes = reinterpret_cast<std::byte*>(bytes.data()),
                      .head_bytes = sizeof(RecordHeader)};
    Walk(*registry.arena(), *slot.channel, {.token = {}, .registers = &registers}, draft);
    EXPECT_EQ(draft.header().end,
              slot.channel->stack.Holds(sp) ? StackEnd::kComplete : StackEnd::kCoroutine);
    const std::span<Address> frames =
        FramesOf(*registry.arena(), draft).first(draft.header().frame_count);
    return std::pair(std::vector<Address>(frames.begin(), frames.end()),
                     draft.header().shared_count);
  };
  EXPECT_THAT(walk(0x402100, own_low, own_low + 32).first, ElementsAre(0x402100, 0x402003));
  ForeignStack::words = {
      0, 0, ForeignStack::kBase + 0x20, 0x401004, ForeignStack::kBase + 0x30, 0x401008, 0, 0};
  EXPECT_THAT(walk(kWalkedPc, ForeignStack::kBase + 8, ForeignStack::kBase + 16).first,
              ElementsAre(kWalkedPc, 0x401003, 0x401007));
  const auto [frames, shared] = walk(0x402100, own_low, own_low + 32);
  EXPECT_THAT(frames, ElementsAre(0x402100, 0x402003));
  EXPECT_EQ(shared, 0u) << "the record before was of another stack";
  registry.Unregister(&slot);
}

// A stack below which memory is mapped down to kMapped.
struct GrownPlatform : ManualPlatform {
  static constexpr Address kMapped = 0x10000000;
  static std::size_t ReadStack(std::uint64_t address, std::span<std::uint8_t> bytes) noexcept {
    return address < kMapped ? 0 : bytes.size();
  }
};
struct GrownTraits : ManualTraits {
  using Platform = GrownPlatform;
};

TEST(StackWalk, AStackGrowsAsFarAsMemoryIsMapped) {
  ThreadRegistry<GrownTraits> registry(4, 4096);
  RegisteredThread<GrownTraits>& slot = **registry.Register({.id = 5, .stack = {}}, "thread");
  StackBounds& stack = slot.channel->stack;
  constexpr Address kLow = GrownPlatform::kMapped + 3 * kMaxStackGrowthBytes;
  stack = {.low = kLow, .high = kLow + 0x10000};
  EXPECT_TRUE(HasGrownTo(*slot.channel, kLow - 0x10800));
  EXPECT_EQ(stack.low, kLow - 0x11000) << "whole pages";
  EXPECT_FALSE(HasGrownTo(*slot.channel, GrownPlatform::kMapped)) << "too far for one sample";
  EXPECT_EQ(stack.low, kLow - 0x11000 - kMaxStackGrowthBytes);
  EXPECT_FALSE(HasGrownTo(*slot.channel, stack.low - kMaxStackReachBytes - 0x1000));
  EXPECT_FALSE(HasGrownTo(*slot.channel, GrownPlatform::kMapped));
  EXPECT_TRUE(HasGrownTo(*slot.channel, GrownPlatform::kMapped));
  EXPECT_FALSE(HasGrownTo(*slot.channel, GrownPlatform::kMapped - 0x1000)) << "another stack";
  EXPECT_EQ(stack.low, GrownPlatform::kMapped);
  registry.Unregister(&slot);
}

}  // namespace
}  // namespace strobe::internal
