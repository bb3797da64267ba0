#include "../../src/core/deleted_mark.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(DeletedMark, IsAtTheEndOfAPath) {
  EXPECT_EQ(WithoutDeletedMark("/bin/server (deleted)"), "/bin/server");
  EXPECT_EQ(WithoutDeletedMark("/memfd:code (deleted)"), "/memfd:code");
  EXPECT_EQ(WithoutDeletedMark("/bin/server"), "/bin/server");
  EXPECT_EQ(WithoutDeletedMark("/bin (deleted)/server"), "/bin (deleted)/server");
  EXPECT_EQ(WithoutDeletedMark(" (deleted)"), " (deleted)") << "a mark without a path";
  EXPECT_EQ(WithoutDeletedMark(""), "");
}

}  // namespace
}  // namespace strobe::internal
