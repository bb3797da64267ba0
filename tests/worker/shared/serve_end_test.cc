#include "strobe/worker/shared/serve_end.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>

namespace strobe::internal {
namespace {

ServeEndCounts Counts(std::initializer_list<std::uint64_t> counts) {
  ServeEndCounts all{};
  std::copy(counts.begin(), counts.end(), all.begin());
  return all;
}

TEST(ServeEnd, TheTextHasTheReasonsThatThereWere) {
  EXPECT_EQ(TextOf({}), "served 0 programs; refused 0");
  EXPECT_EQ(TextOf(Counts({3, 2})), "served 5 programs, of which 2 failed; refused 0");
  EXPECT_EQ(TextOf(Counts({1, 0, 1, 2, 3, 4, 5, 6, 7})),
            "served 1 programs; refused 28: 1 other user, 2 other version, 3 malformed, 4 wrong "
            "memory, 5 too slow, 6 left without hello, 7 no room");
  EXPECT_EQ(TextOf(Counts({0, 0, 0, 0, 0, 0, 9})), "served 0 programs; refused 9: 9 too slow");
}

TEST(ServeEnd, AStatusSaysWhy) {
  EXPECT_EQ(RefusalOf(absl::PermissionDeniedError("")), ServeEnd::kOtherUser);
  EXPECT_EQ(RefusalOf(absl::UnimplementedError("")), ServeEnd::kOtherVersion);
  EXPECT_EQ(RefusalOf(absl::InvalidArgumentError("")), ServeEnd::kMalformed);
  EXPECT_EQ(RefusalOf(absl::FailedPreconditionError("")), ServeEnd::kMemory);
  EXPECT_EQ(RefusalOf(absl::DeadlineExceededError("")), ServeEnd::kSlow);
  EXPECT_EQ(RefusalOf(absl::UnavailableError("")), ServeEnd::kLeft);
  EXPECT_EQ(RefusalOf(absl::ResourceExhaustedError("")), ServeEnd::kNoRoom);
}

}  // namespace
}  // namespace strobe::internal
