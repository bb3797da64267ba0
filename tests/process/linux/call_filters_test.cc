#include "../../../src/process/linux/call_filters.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace strobe::internal {
namespace {

// Of this thread, a filter that allows all.
bool AddFilter() {
  sock_filter allow{BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW};
  const sock_fprog program{1, &allow};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(CountCallFilters, SaysWhetherOneHasCome) {
  constexpr int kNoFilters = 77;  // this system has none
  const int before = CountCallFilters();
  ASSERT_GE(before, 0);
  const pid_t child = fork();
  if (child == 0) _exit(AddFilter() ? CountCallFilters() : kNoFilters);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kNoFilters) GTEST_SKIP() << "no filter can be added";
  EXPECT_EQ(WEXITSTATUS(status), before + 1);
  EXPECT_EQ(CountCallFilters(), before) << "the child's filter is its own";
}

}  // namespace
}  // namespace strobe::internal
