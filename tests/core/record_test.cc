#include "strobe/core/record.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <type_traits>

namespace strobe {
namespace {

TEST(Record, IsHeaderWeightsAndAddresses) {
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

TEST(Record, IsReadAsItWasWritten) {
  constexpr std::size_t kWeights = 2;
  constexpr std::size_t kFrames = 3;
  constexpr std::size_t kSlice = sizeof(SliceHeader) + 16;
  alignas(8) std::array<std::byte, RecordBytes(kWeights, kFrames, kSlice)> bytes{};
  RecordHeader header{.module_generation = 7,
                      .frame_count = kFrames,
                      .weight_count = kWeights,
                      .slice_bytes = kSlice};
  const std::array<std::int64_t, kWeights> weights = {-1, 2};
  const std::array<Address, kFrames> frames = {10, 11, 12};
  const auto write = [&] {
    std::memcpy(bytes.data(), &header, sizeof(header));
    std::memcpy(bytes.data() + sizeof(header), weights.data(), sizeof(weights));
    std::memcpy(bytes.data() + RecordBytes(kWeights, 0), frames.data(), sizeof(frames));
  };
  write();
  RecordView view;
  ASSERT_TRUE(ReadRecord(bytes, kWeights, view));
  EXPECT_EQ(view.header.module_generation, 7u);
  EXPECT_TRUE(std::equal(view.weights.begin(), view.weights.end(), weights.begin(), weights.end()));
  EXPECT_TRUE(std::equal(view.frames.begin(), view.frames.end(), frames.begin(), frames.end()));
  EXPECT_EQ(view.slice.data(), bytes.data() + RecordBytes(kWeights, kFrames));
  EXPECT_EQ(view.slice.size(), kSlice);

  EXPECT_FALSE(ReadRecord(bytes, kWeights + 1, view)) << "another build's providers";
  EXPECT_FALSE(ReadRecord(std::span(bytes).first(bytes.size() - 8), kWeights, view));
  EXPECT_FALSE(ReadRecord(std::span(bytes).first(8), kWeights, view));
  for (const std::uint32_t wrong :
       {std::uint32_t{0}, static_cast<std::uint32_t>(kSlice) - 8, ~std::uint32_t{0}}) {
    header.slice_bytes = wrong;
    write();
    EXPECT_FALSE(ReadRecord(bytes, kWeights, view)) << wrong;
  }
}

}  // namespace
}  // namespace strobe
