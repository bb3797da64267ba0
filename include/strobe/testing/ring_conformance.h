// The conformance suite of SampleRing. A ring of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyRing, RingConformance, MyRing);
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/ring/sample_ring.h"

namespace strobe::testing {

// Storage of a ring under test, aligned to a cache line and filled with a pattern: a ring must work
// without clearing its storage.
class RingStorage {
 public:
  explicit RingStorage(std::size_t bytes)
      : lines_((bytes + sizeof(Line) - 1) / sizeof(Line)), bytes_(bytes) {
    std::memset(lines_.data(), kUntouched, lines_.size() * sizeof(Line));
  }
  std::span<std::byte> bytes() { return {lines_[0].bytes, bytes_}; }
  // The number of bytes from the front up to the last one written.
  std::size_t touched_bytes() {
    const auto all = bytes();
    std::size_t end = all.size();
    while (end > 0 && all[end - 1] == std::byte{kUntouched}) --end;
    return end;
  }

 private:
  static constexpr unsigned char kUntouched = 0xA5;
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> lines_;
  std::size_t bytes_;
};

// Byte `index` of record `sequence`.
inline std::byte RingTestByte(std::uint64_t sequence, std::size_t index) {
  return static_cast<std::byte>((sequence * 31 + index * 7 + 1) & 0xFF);
}
inline void FillRingRecord(std::span<std::byte> record, std::uint64_t sequence) {
  for (std::size_t i = 0; i < record.size(); ++i) record[i] = RingTestByte(sequence, i);
}
inline bool IsRingRecord(std::span<const std::byte> record, std::uint64_t sequence) {
  for (std::size_t i = 0; i < record.size(); ++i) {
    if (record[i] != RingTestByte(sequence, i)) return false;
  }
  return true;
}

// Reserves `reserve` bytes, then writes and commits `size` of them. False if the ring has no space.
template <class R>
bool PushRingRecord(R& ring, std::uint64_t sequence, std::size_t size, std::size_t reserve) {
  std::byte* record = ring.Reserve(reserve);
  if (record == nullptr) return false;
  FillRingRecord({record, size}, sequence);
  ring.Commit(size);
  return true;
}

template <class R>
class RingConformance : public ::testing::Test {};
TYPED_TEST_SUITE_P(RingConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RingConformance);

TYPED_TEST_P(RingConformance, IsEmptyAfterResetAndHasTouchedNothing) {
  RingStorage storage(4096);
  TypeParam ring;
  ring.Reset(storage.bytes());
  EXPECT_TRUE(ring.Peek().empty());
  EXPECT_EQ(ring.used_bytes(), 0u);
  EXPECT_EQ(storage.touched_bytes(), 0u);
  ASSERT_TRUE(PushRingRecord(ring, 1, 100, 100));
  ring.Reset(storage.bytes());
  EXPECT_TRUE(ring.Peek().empty());
  EXPECT_EQ(ring.used_bytes(), 0u);
}

TYPED_TEST_P(RingConformance, ShrinksAtCommitAndKeepsOrderSizeAlignmentAndBytes) {
  RingStorage storage(4096);
  TypeParam ring;
  ring.Reset(storage.bytes());
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence)
    ASSERT_TRUE(PushRingRecord(ring, sequence, sequence * 3, 200));
  EXPECT_GE(ring.used_bytes(), 3u * 20 * 21 / 2);
  EXPECT_LT(ring.used_bytes(), 20u * 200)
      << "what was reserved and not committed was not given back";
  for (std::uint64_t sequence = 1; sequence <= 20; ++sequence) {
    const auto record = ring.Peek();
    ASSERT_EQ(record.size(), sequence * 3);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(record.data()) % 8, 0u);
    EXPECT_TRUE(IsRingRecord(record, sequence));
    EXPECT_EQ(ring.Peek().data(), record.data()) << "Peek moved without a Pop";
    ring.Pop();
  }
  EXPECT_TRUE(ring.Peek().empty());
  EXPECT_EQ(ring.used_bytes(), 0u);
}

TYPED_TEST_P(RingConformance, ReserveAloneShowsTheConsumerNothing) {
  RingStorage storage(4096);
  TypeParam ring;
  ring.Reset(storage.bytes());
  std::byte* first = ring.Reserve(64);
  ASSERT_NE(first, nullptr);
  EXPECT_TRUE(ring.Peek().empty());
  EXPECT_EQ(ring.Reserve(64), first);
  EXPECT_TRUE(PushRingRecord(ring, 7, 8, 64));
  ASSERT_EQ(ring.Peek().size(), 8u);
  EXPECT_TRUE(IsRingRecord(ring.Peek(), 7));
}

TYPED_TEST_P(RingConformance, LargestRecordFitsWheneverTheRingIsEmpty) {
  for (const std::size_t capacity : {64u, 1024u, 4096u, 32768u}) {
    RingStorage storage(capacity);
    TypeParam ring;
    ring.Reset(storage.bytes());
    const std::size_t largest = TypeParam::MaxRecordBytes(capacity);
    ASSERT_GT(largest, 0u);
    EXPECT_EQ(ring.Reserve(capacity + 1), nullptr);
    for (std::uint64_t sequence = 1; sequence <= 50; ++sequence) {
      // A small record first, so that the ring becomes empty at many positions.
      const std::size_t small = std::min<std::size_t>(largest, sequence);
      ASSERT_TRUE(PushRingRecord(ring, sequence, small, small)) << capacity;
      ASSERT_TRUE(IsRingRecord(ring.Peek(), sequence));
      ring.Pop();
      ASSERT_TRUE(PushRingRecord(ring, sequence, largest, largest))
          << capacity << " at record " << sequence;
      ASSERT_EQ(ring.Peek().size(), largest);
      ASSERT_TRUE(IsRingRecord(ring.Peek(), sequence));
      ring.Pop();
    }
  }
}

TYPED_TEST_P(RingConformance, RefusesWhenFullAndLosesNothingOfWhatItTook) {
  RingStorage storage(1024);
  TypeParam ring;
  ring.Reset(storage.bytes());
  std::uint64_t pushed = 0;
  std::uint64_t popped = 0;
  for (int round = 0; round < 200; ++round) {
    while (PushRingRecord(ring, pushed, 8 + (pushed * 13) % 90, 100)) ++pushed;
    ASSERT_GE(ring.used_bytes(), 1024u / 2);
    ASSERT_LE(ring.used_bytes(), 1024u);
    for (int i = 0; i < 1 + round % 7; ++i) {
      const auto record = ring.Peek();
      if (record.empty()) break;
      ASSERT_EQ(record.size(), 8 + (popped * 13) % 90);
      ASSERT_TRUE(IsRingRecord(record, popped)) << "record " << popped;
      ring.Pop();
      ++popped;
    }
  }
  EXPECT_GT(popped, 500u);
}

TYPED_TEST_P(RingConformance, TwoThreadsSeeEveryRecordOnceInOrder) {
  constexpr std::uint64_t kRecords = 30000;
  for (const std::size_t capacity : {256u, 4096u, 65536u}) {
    RingStorage storage(capacity);
    TypeParam ring;
    ring.Reset(storage.bytes());
    const std::size_t largest = std::min<std::size_t>(TypeParam::MaxRecordBytes(capacity), 700);
    const auto size_of = [=](std::uint64_t sequence) {
      return 1 + (sequence * 0x9E3779B97F4A7C15 >> 40) % largest;
    };
    std::thread producer([&] {
      for (std::uint64_t sequence = 0; sequence < kRecords; ++sequence) {
        while (!PushRingRecord(ring, sequence, size_of(sequence),
                               sequence % 3 == 0 ? largest : size_of(sequence)))
          std::this_thread::yield();
      }
    });
    std::uint64_t bad = 0;
    for (std::uint64_t sequence = 0; sequence < kRecords;) {
      const auto record = ring.Peek();
      if (record.empty()) {
        std::this_thread::yield();
        continue;
      }
      if (ring.used_bytes() > capacity || record.size() != size_of(sequence) ||
          !IsRingRecord(record, sequence))
        ++bad;
      ring.Pop();
      ++sequence;
    }
    producer.join();
    EXPECT_EQ(bad, 0u) << "capacity " << capacity;
    EXPECT_EQ(ring.corruptions(), 0u);
    EXPECT_TRUE(ring.Peek().empty());
    EXPECT_EQ(ring.used_bytes(), 0u);
  }
}

TYPED_TEST_P(RingConformance, ACopyElsewhereIsTheSameRing) {
  struct Block {
    TypeParam ring;
    alignas(64) std::byte storage[1024];
  };
  RingStorage first(sizeof(Block));
  RingStorage second(sizeof(Block));
  auto& original = *new (first.bytes().data()) Block;
  original.ring.Reset(original.storage);
  for (std::uint64_t sequence = 1; sequence <= 4; ++sequence)
    ASSERT_TRUE(PushRingRecord(original.ring, sequence, 100, 200));
  ASSERT_TRUE(IsRingRecord(original.ring.Peek(), 1));
  original.ring.Pop();

  std::memcpy(second.bytes().data(), first.bytes().data(), sizeof(Block));
  std::memset(first.bytes().data(), 0xA5, sizeof(Block));
  auto& copy = *std::launder(reinterpret_cast<Block*>(second.bytes().data()));
  ASSERT_TRUE(PushRingRecord(copy.ring, 5, 100, 200));
  for (std::uint64_t sequence = 2; sequence <= 5; ++sequence) {
    const auto record = copy.ring.Peek();
    ASSERT_EQ(record.size(), 100u);
    EXPECT_GE(record.data(), copy.storage);
    EXPECT_LE(record.data() + record.size(), copy.storage + sizeof(copy.storage));
    EXPECT_TRUE(IsRingRecord(record, sequence));
    copy.ring.Pop();
  }
  EXPECT_TRUE(copy.ring.Peek().empty());
  EXPECT_EQ(copy.ring.corruptions(), 0u);
}

REGISTER_TYPED_TEST_SUITE_P(RingConformance, IsEmptyAfterResetAndHasTouchedNothing,
                            ShrinksAtCommitAndKeepsOrderSizeAlignmentAndBytes,
                            ReserveAloneShowsTheConsumerNothing,
                            LargestRecordFitsWheneverTheRingIsEmpty,
                            RefusesWhenFullAndLosesNothingOfWhatItTook,
                            TwoThreadsSeeEveryRecordOnceInOrder, ACopyElsewhereIsTheSameRing);

}  // namespace strobe::testing
