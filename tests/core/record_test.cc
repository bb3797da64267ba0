#include "strobe/core/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>

namespace strobe {
namespace {

TEST(Record, IsHeaderWordsAndAddresses) {
  EXPECT_EQ(RecordBytes(0, 0), 16u);
  EXPECT_EQ(RecordBytes(1, 36), 16u + 8u + 36u * 8u);
  EXPECT_EQ(RecordBytes(3, kMaxFramesLimit) % 8, 0u);
}

// It must be copied by bytes, and be counted in its own fields, for any option that Validate lets
// through.
TEST(Record, HeaderHoldsTheLargestStack) {
  static_assert(std::is_trivially_copyable_v<RecordHeader>);
  static_assert(kMaxFramesLimit <= std::numeric_limits<decltype(RecordHeader::frame_count)>::max());
}

// A record with the words that its header names, in order.
struct Written {
  static constexpr std::size_t kWords = 4;
  static constexpr std::size_t kFrames = 3;
  static constexpr std::size_t kSlice = sizeof(SliceHeader) + 16;

  RecordHeader header{.module_generation = 7,
                      .frame_count = kFrames,
                      .amounts = 0b1010,
                      .flags = kRecordHasContext | kRecordHasTime,
                      .slice_bytes = kSlice};
  alignas(8) std::array<std::byte, RecordBytes(kWords, kFrames, kSlice)> bytes{};
  RecordView view{};

  bool Read(std::size_t size = RecordBytes(kWords, kFrames, kSlice),
            std::uint16_t value_types = 0b1010) {
    const std::array<std::int64_t, kWords> words = {99, 1234, -1, 2};
    const std::array<Address, kFrames> frames = {10, 11, 12};
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), words.data(), sizeof(words));
    std::memcpy(bytes.data() + RecordBytes(kWords, 0), frames.data(), sizeof(frames));
    return ReadRecord(std::span(bytes).first(size), value_types, view);
  }
};

TEST(Record, IsReadAsItWasWritten) {
  Written record;
  ASSERT_TRUE(record.Read());
  const RecordView& view = record.view;
  EXPECT_EQ(view.header.module_generation, 7u);
  EXPECT_EQ(view.context, 99u);
  EXPECT_EQ(view.time_ns, 1234);
  EXPECT_EQ(view.Amount(0), 0);
  EXPECT_EQ(view.Amount(1), -1);
  EXPECT_EQ(view.Amount(2), 0);
  EXPECT_EQ(view.Amount(3), 2);
  EXPECT_EQ(view.Amount(4), 0);
  EXPECT_TRUE(std::ranges::equal(view.frames, std::array<Address, 3>{10, 11, 12}));
  EXPECT_EQ(view.slice.data(),
            record.bytes.data() + RecordBytes(Written::kWords, Written::kFrames));
  EXPECT_EQ(view.slice.size(), Written::kSlice);
}

TEST(Record, OptionalWordsAreNotThereUnlessTheHeaderSaysSo) {
  Written record;
  record.header.flags = 0;
  record.header.frame_count += 2;
  ASSERT_TRUE(record.Read());
  EXPECT_EQ(record.view.context, 0u);
  EXPECT_EQ(record.view.time_ns, 0);
  EXPECT_EQ(record.view.Amount(1), 99) << "the first word is an amount now";
}

TEST(Record, IsNoneWhereItsCountsDoNotFit) {
  Written record;
  EXPECT_FALSE(record.Read(record.bytes.size() - 8));
  EXPECT_FALSE(record.Read(8));
  EXPECT_FALSE(record.Read(record.bytes.size(), 0b0010)) << "another build's value types";
  for (const std::size_t wrong : {0b0010, 0b1011, 0xFFFF}) {
    record.header.amounts = static_cast<std::uint16_t>(wrong);
    EXPECT_FALSE(record.Read(record.bytes.size(), 0xFFFF)) << wrong;
  }
  record = Written();
  for (const std::size_t wrong : {0, 1, 2, 7, 0xFF}) {
    record.header.flags = static_cast<std::uint8_t>(wrong);
    EXPECT_FALSE(record.Read()) << wrong;
  }
  record = Written();
  for (const std::uint32_t wrong :
       {std::uint32_t{0}, std::uint32_t{Written::kSlice} - 8, ~std::uint32_t{0}}) {
    record.header.slice_bytes = wrong;
    EXPECT_FALSE(record.Read()) << wrong;
  }
}

}  // namespace
}  // namespace strobe
