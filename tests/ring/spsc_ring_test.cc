#include "strobe/ring/spsc_ring.h"

#include <random>
#include <thread>

#include "gtest/gtest.h"
#include "strobe/testing/ring_conformance.h"

namespace strobe {
namespace {

using testing::IsRingRecord;
using testing::PushRingRecord;
using testing::RingStorage;

TEST(SpscRingTest, RingsTooSmallForARecordRefuseEverything) {
  for (const std::size_t bytes : {0u, 1u, 8u, 15u}) {
    RingStorage storage(64);
    SpscRing ring;
    ring.Reset(storage.bytes().first(bytes));
    EXPECT_EQ(SpscRing::MaxRecordBytes(bytes), 0u);
    EXPECT_EQ(ring.Reserve(0), nullptr);
    EXPECT_EQ(ring.Reserve(1), nullptr);
    EXPECT_TRUE(ring.Peek().empty());
    EXPECT_EQ(storage.touched_bytes(), 0u);
  }
  SpscRing never_reset;
  EXPECT_EQ(never_reset.Reserve(1), nullptr);
  EXPECT_TRUE(never_reset.Peek().empty());
}

TEST(SpscRingTest, SmallestRingCarriesOneWordAtATime) {
  RingStorage storage(16);
  SpscRing ring;
  ring.Reset(storage.bytes());
  ASSERT_EQ(SpscRing::MaxRecordBytes(16), 8u);
  for (std::uint64_t sequence = 0; sequence < 100; ++sequence) {
    ASSERT_TRUE(PushRingRecord(ring, sequence, 1 + sequence % 8, 8));
    EXPECT_FALSE(PushRingRecord(ring, sequence, 1, 1));
    ASSERT_EQ(ring.Peek().size(), 1 + sequence % 8);
    ASSERT_TRUE(IsRingRecord(ring.Peek(), sequence));
    ring.Pop();
  }
}

TEST(SpscRingTest, StorageBeyondAPowerOfTwoIsLeftAlone) {
  RingStorage storage(1000);
  SpscRing ring;
  ring.Reset(storage.bytes());
  EXPECT_EQ(SpscRing::MaxRecordBytes(1000), 504u);
  while (PushRingRecord(ring, 1, 40, 40)) {
  }
  EXPECT_LE(storage.touched_bytes(), 512u);
}

TEST(SpscRingTest, RecordThatDoesNotFitBeforeTheEndGoesToTheFrontInOnePiece) {
  RingStorage storage(256);
  SpscRing ring;
  ring.Reset(storage.bytes());
  ASSERT_TRUE(PushRingRecord(ring, 1, 100, 100));  // [0, 112)
  ASSERT_TRUE(PushRingRecord(ring, 2, 80, 80));    // [112, 200)
  EXPECT_FALSE(PushRingRecord(ring, 3, 80, 80));
  ring.Peek();
  ring.Pop();
  ASSERT_TRUE(
      PushRingRecord(ring, 3, 80, 80));  // a marker over [200, 256), the record at the front
  EXPECT_EQ(ring.used_bytes(), 88u + 56u + 88u);
  ASSERT_TRUE(IsRingRecord(ring.Peek(), 2));
  ring.Pop();
  ASSERT_EQ(ring.Peek().size(), 80u);
  EXPECT_EQ(ring.Peek().data(), storage.bytes().data() + 8);
  EXPECT_TRUE(IsRingRecord(ring.Peek(), 3));
  ring.Pop();
  EXPECT_EQ(ring.used_bytes(), 0u);
}

TEST(SpscRingTest, ReservationIsReplacedByALaterOneEvenAcrossTheEnd) {
  RingStorage storage(256);
  SpscRing ring;
  ring.Reset(storage.bytes());
  ASSERT_TRUE(PushRingRecord(ring, 1, 100, 100));
  ASSERT_TRUE(PushRingRecord(ring, 2, 80, 80));
  ring.Peek();
  ring.Pop();
  ASSERT_NE(ring.Reserve(80), nullptr);          // would wrap
  ASSERT_TRUE(PushRingRecord(ring, 3, 24, 40));  // fits before the end
  ASSERT_TRUE(IsRingRecord(ring.Peek(), 2));
  ring.Pop();
  ASSERT_EQ(ring.Peek().size(), 24u);
  EXPECT_TRUE(IsRingRecord(ring.Peek(), 3));
}

TEST(SpscRingTest, CommitOfNothingGivesTheSpaceBack) {
  RingStorage storage(64);
  SpscRing ring;
  ring.Reset(storage.bytes());
  for (int i = 0; i < 10; ++i) {
    ASSERT_NE(ring.Reserve(56), nullptr);
    ring.Commit(0);
    EXPECT_TRUE(ring.Peek().empty());
  }
  EXPECT_TRUE(PushRingRecord(ring, 4, 56, 56));
}

TEST(SpscRingTest, PopWithoutPeekRemovesNothing) {
  RingStorage storage(64);
  SpscRing ring;
  ring.Reset(storage.bytes());
  ring.Pop();
  ASSERT_TRUE(PushRingRecord(ring, 1, 8, 8));
  ring.Pop();
  EXPECT_TRUE(IsRingRecord(ring.Peek(), 1));
  EXPECT_EQ(ring.Peek().size(), 8u);
}

TEST(SpscRingTest, ThreadThatIsSampledRarelyTouchesOnePage) {
  RingStorage storage(64 * 1024);
  SpscRing ring;
  ring.Reset(storage.bytes());
  for (std::uint64_t sequence = 0; sequence < 1000; ++sequence) {
    ASSERT_TRUE(PushRingRecord(ring, sequence, 320, 4200));
    if (sequence % 6 == 5) {
      while (!ring.Peek().empty()) ring.Pop();
    }
  }
  EXPECT_LE(storage.touched_bytes(), 4096u);
}

TEST(SpscRingTest, RandomSizesAgainstAModel) {
  std::mt19937_64 random(1);
  for (const std::size_t capacity : {16u, 32u, 64u, 512u, 8192u}) {
    RingStorage storage(capacity);
    SpscRing ring;
    ring.Reset(storage.bytes());
    std::vector<std::size_t> sizes;
    std::uint64_t popped = 0;
    for (int step = 0; step < 20000; ++step) {
      if (random() % 2 == 0) {
        const std::size_t reserve = 1 + random() % SpscRing::MaxRecordBytes(capacity);
        const std::size_t size = 1 + random() % reserve;
        if (PushRingRecord(ring, sizes.size(), size, reserve)) sizes.push_back(size);
      } else {
        const auto record = ring.Peek();
        ASSERT_EQ(record.empty(), popped == sizes.size());
        if (record.empty()) continue;
        ASSERT_EQ(record.size(), sizes[popped]);
        ASSERT_TRUE(IsRingRecord(record, popped));
        ring.Pop();
        ++popped;
      }
    }
    EXPECT_EQ(ring.corruptions(), 0u);
  }
}

// Whatever stands in the storage, every span that Peek returns lies inside it, and the consumer
// always comes to an end.
TEST(SpscRingTest, ScribbledStorageIsEmptiedAndNeverReadBeyond) {
  std::mt19937_64 random(2);
  std::uint64_t corruptions = 0;
  for (int round = 0; round < 3000; ++round) {
    const std::size_t capacity = std::size_t{64} << (random() % 5);
    RingStorage storage(capacity);
    const auto bytes = storage.bytes();
    SpscRing ring;
    ring.Reset(bytes);
    for (int step = 0; step < 40; ++step) {
      const std::size_t reserve = 1 + random() % SpscRing::MaxRecordBytes(capacity);
      PushRingRecord(ring, 1, 1 + random() % reserve, reserve);
      for (int i = 0; i < 4; ++i)
        bytes[random() % capacity] = static_cast<std::byte>(random() % 3 == 0 ? 0 : random());
      if (random() % 2 == 0) continue;
      int records = 0;
      for (auto record = ring.Peek(); !record.empty(); record = ring.Peek()) {
        ASSERT_GE(record.data(), bytes.data());
        ASSERT_LE(record.data() + record.size(), bytes.data() + bytes.size());
        ASSERT_LT(++records, 200);
        ring.Pop();
      }
      ASSERT_EQ(ring.used_bytes(), 0u);
    }
    while (!ring.Peek().empty()) ring.Pop();
    corruptions += ring.corruptions();
    ASSERT_TRUE(PushRingRecord(ring, 9, 24, 24)) << "the ring does not recover";
    EXPECT_TRUE(IsRingRecord(ring.Peek(), 9));
  }
  EXPECT_GT(corruptions, 100u);
}

// Another process may write the ring's state, too. Whatever stands there, what is read lies within
// the memory that the caller knows of, and the ring goes on.
TEST(SpscRingTest, AStateThatAnotherProcessHasWrittenLeadsNowhereElse) {
  std::mt19937_64 random(11);
  RingStorage storage(256);
  const std::span<std::byte> memory = storage.bytes();
  int records = 0;
  for (int round = 0; round < 20000; ++round) {
    SpscRing ring;
    ring.Reset(memory);
    PushRingRecord(ring, 1, 40, 40);
    PushRingRecord(ring, 2, 80, 80);
    auto* const words = reinterpret_cast<std::uint64_t*>(&ring);
    for (int i = 0; i < 3; ++i)
      words[random() % (sizeof(ring) / sizeof(*words))] =
          round % 2 == 0 ? random() : random() % 512;
    for (std::size_t i = 0; i < memory.size(); ++i) {
      const std::span<const std::byte> record = ring.PeekIn(memory);
      if (record.empty()) break;
      ++records;
      ASSERT_GE(record.data(), memory.data());
      ASSERT_LE(record.data() + record.size(), memory.data() + memory.size());
      ring.Pop();
    }
  }
  EXPECT_GT(records, 1000) << "or there was nothing to check";
}

}  // namespace
}  // namespace strobe
