#include "strobe/unwind/fetched_stack_memory.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe {
namespace {

using testing::FakeMemory;

constexpr Address kPage = 4096;

// What a function that is known at compile time reads from.
FakeMemory* memory_of_thread = nullptr;
std::size_t ReadThread(Address address, std::span<std::uint8_t> bytes) noexcept {
  return (*memory_of_thread)(address, bytes);
}
using Memory = FetchedStackMemory<&ReadThread>;

class FetchedStackMemoryTest : public ::testing::Test {
 protected:
  FetchedStackMemoryTest() { memory_of_thread = &thread_; }
  // Each word holds its own address, plus one.
  void Map(Address address, std::size_t size) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t at = 0; at < size; at += sizeof(Address)) {
      const Address word = address + at + 1;
      std::memcpy(bytes.data() + at, &word, sizeof(word));
    }
    thread_.Map(address, std::move(bytes));
  }
  static bool Reads(const Memory& memory, Address address) {
    Address word = 99;
    const bool is_read = memory.ReadWord(address, word);
    EXPECT_EQ(word, is_read ? address + 1 : 99) << "untouched by a read that fails";
    return is_read;
  }
  alignas(8) std::array<std::uint8_t, 2 * kPage> room_{};
  FakeMemory thread_;
};

TEST_F(FetchedStackMemoryTest, OneCallServesAWalkThatStaysWithinItsCopy) {
  Map(16 * kPage, 4 * kPage);
  const Memory memory({}, room_);
  EXPECT_TRUE(Reads(memory, 17 * kPage + 512));
  EXPECT_TRUE(Reads(memory, 17 * kPage + 8))
      << "a little below, as a saved frame pointer lies below a return address";
  EXPECT_TRUE(Reads(memory, 19 * kPage - 8));
  EXPECT_THAT(thread_.reads(), ::testing::ElementsAre(17 * kPage));
}

TEST_F(FetchedStackMemoryTest, ThereIsAnotherCallForWhatLiesBeyond) {
  Map(16 * kPage, 4 * kPage);
  Map(64 * kPage, kPage);
  const Memory memory({}, room_);
  EXPECT_TRUE(Reads(memory, 16 * kPage));
  EXPECT_TRUE(Reads(memory, 19 * kPage)) << "further up";
  EXPECT_TRUE(Reads(memory, 65 * kPage - 8)) << "on another stack";
  EXPECT_EQ(thread_.reads().size(), 3u);
}

TEST_F(FetchedStackMemoryTest, WhatIsNotMappedCannotBeRead) {
  Map(16 * kPage, kPage);
  const Memory memory({}, room_);
  EXPECT_FALSE(Reads(memory, 15 * kPage));
  EXPECT_TRUE(Reads(memory, 17 * kPage - 8));
  EXPECT_FALSE(Reads(memory, 17 * kPage));
  EXPECT_FALSE(Reads(memory, ~Address{7}));
  EXPECT_FALSE(Reads(memory, 0));
  EXPECT_FALSE(Reads(memory, 16 * kPage + 4)) << "no word of a stack lies there";
}

TEST_F(FetchedStackMemoryTest, TheCallsOfAWalkAreBounded) {
  Map(0, 64 * kPage);
  const Memory memory({}, room_);
  for (Address i = 0; i < Memory::kMaxFetches; ++i) EXPECT_TRUE(Reads(memory, 4 * i * kPage));
  EXPECT_FALSE(Reads(memory, 63 * kPage));
  EXPECT_EQ(thread_.reads().size(), static_cast<std::size_t>(Memory::kMaxFetches));
}

TEST_F(FetchedStackMemoryTest, WithoutRoomNothingCanBeRead) {
  Map(16 * kPage, kPage);
  EXPECT_FALSE(Reads(Memory({}, {}), 16 * kPage));
}

TEST_F(FetchedStackMemoryTest, OfTheThreadsOwnStackOnePageIsFetchedAndTheRestReadInPlace) {
  constexpr std::size_t kWords = 64 * kPage / 8;
  std::vector<Address> words(kWords + kPage / 8);
  const Address base = (reinterpret_cast<Address>(words.data()) + kPage - 1) & ~(kPage - 1);
  const StackBounds own{.low = base, .high = base + 63 * kPage};
  for (Address at = own.low; at < own.high; at += 8) *reinterpret_cast<Address*>(at) = at + 1;
  Map(own.low + 8 * kPage,
      55 * kPage);  // what lies lower has not been touched yet, as on the initial thread's stack
  const Memory memory(own, room_);
  EXPECT_FALSE(Reads(memory, own.low + 7 * kPage));
  EXPECT_TRUE(Reads(memory, own.low + 9 * kPage + 64));
  EXPECT_EQ(thread_.reads().size(), 2u);
  for (Address at = own.low + 9 * kPage; at < own.high; at += kPage / 2)
    EXPECT_TRUE(Reads(memory, at));
  EXPECT_EQ(thread_.reads().size(), 2u);
  EXPECT_TRUE(Reads(memory, own.low + 8 * kPage)) << "below: by another call";
  EXPECT_EQ(thread_.reads().size(), 3u);
  EXPECT_FALSE(Reads(memory, own.high));
}

}  // namespace
}  // namespace strobe
