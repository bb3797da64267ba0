#include "../../src/preload/next.h"

#include <unistd.h>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constinit Next<pid_t()> get_process{"getpid"};
constinit Next<void()> missing{"strobe_no_such_function"};

TEST(Next, IsTheFunctionOfTheLibraryBehind) {
  ASSERT_NE(*get_process, nullptr);
  EXPECT_EQ((*get_process)(), getpid());
  EXPECT_EQ((*get_process)(), getpid());  // not looked up any more
}

TEST(Next, IsNothingWhereNoLibraryHasIt) { EXPECT_EQ(*missing, nullptr); }

}  // namespace
}  // namespace strobe::internal
