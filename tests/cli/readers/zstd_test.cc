#include "../../../src/cli/readers/zstd.h"

#include <array>
#include <cstddef>
#include <span>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(ZstdStream, RefusesWhatIsNone) {
  const std::array<std::byte, 64> zeros{};
  ZstdStream stream;
  std::span<const std::byte> compressed = zeros;
  EXPECT_FALSE(stream.Next(compressed).ok());
}

TEST(ZstdStream, BeginsAndEndsBetweenFrames) {
  const ZstdStream stream;
  EXPECT_TRUE(stream.is_between_frames());
}

}  // namespace
}  // namespace strobe::internal
