#include "strobe/core/record.h"

#include <gtest/gtest.h>

#include <limits>
#include <type_traits>

namespace strobe {
namespace {

TEST(Record, IsHeaderWeightsAndAddresses) {
  EXPECT_EQ(RecordBytes(0, 0), 16u);
  EXPECT_EQ(RecordBytes(1, 36), 16u + 8u + 36u * 8u);
  EXPECT_EQ(RecordBytes(3, kMaxFramesLimit) % 8, 0u);
}

// It must be copied by bytes, and be counted in its own fields, for any option that Validate lets through.
TEST(Record, HeaderHoldsTheLargestStack) {
  static_assert(std::is_trivially_copyable_v<RecordHeader>);
  static_assert(kMaxFramesLimit <= std::numeric_limits<decltype(RecordHeader::frame_count)>::max());
}

}  // namespace
}  // namespace strobe
