#include "../../../src/platform/linux/files/few_files.h"

#include <sys/resource.h>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(FewFiles, AreThoseBelowTheLimit) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  for (const rlim_t files : {kFewFiles - 1, kFewFiles}) {
    rlimit limit = before;
    limit.rlim_cur = files;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    EXPECT_EQ(HasFewFiles(), files < kFewFiles);
  }
  setrlimit(RLIMIT_NOFILE, &before);
}

}  // namespace
}  // namespace strobe::internal
