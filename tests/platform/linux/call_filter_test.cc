#include "../../../src/platform/linux/files/call_filter.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "gtest/gtest.h"
#include "support/in_child.h"

namespace strobe::internal {
namespace {

TEST(CallFilterTest, IsFound) {
  EXPECT_TRUE(testing::HoldsInChild([] {
    sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const sock_fprog program{.len = 1, .filter = &allow};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
      return true;  // the system has none
    return HasCallFilter();
  }));
}

}  // namespace
}  // namespace strobe::internal
