#include "../../../../src/cli/perf/linux/file_shares.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(FileSharesTest, LeaveWhatTheEndOfARecordingNeeds) {
  for (std::size_t files = 0; files < 100'000; files += 1 + files / 50) {
    const FileShares shares = FileShares::Of(files);
    const std::size_t taken = shares.images + shares.connections + shares.events;
    EXPECT_LE(taken, files);
    EXPECT_GE(files - taken, std::min(FileShares::kReserve, files / 2)) << files;
  }
}

TEST(FileSharesTest, HaveALimitHoweverManyFilesThereMayBe) {
  const FileShares shares = FileShares::Of(std::numeric_limits<std::size_t>::max());
  EXPECT_EQ(shares.images, FileShares::kMaxImages);
  EXPECT_EQ(shares.connections, FileShares::kMaxConnections);
  EXPECT_EQ(shares.events, FileShares::kMaxEvents);
}

}  // namespace
}  // namespace strobe::internal
