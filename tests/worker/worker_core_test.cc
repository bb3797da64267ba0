#include "strobe/worker/worker_core.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

#include "can_begin_workers.h"

namespace strobe::internal {
namespace {

// What is no worker leaves the program as it was: its threads register, and end.
TEST(WorkerCore, WithoutAWorkerTheProgramGoesOn) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  setenv("STROBE_WORKER_COMMAND", "/bin/true", 1);
  WorkerCore core({});
  {
    const Registration before = core.RegisterThread("before");
    EXPECT_TRUE(before.status().ok()) << before.status();
    EXPECT_EQ(core.Start().code(), absl::StatusCode::kUnavailable);
    EXPECT_NE(core.Diagnose().find("has not answered"), std::string::npos) << core.Diagnose();
    EXPECT_EQ(core.GetStats().threads_registered, 1U);
  }
  EXPECT_EQ(core.GetStats().threads_registered, 0U);
  EXPECT_TRUE(core.RegisterThread("again").status().ok());
  EXPECT_EQ(core.Stop().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(core.Flush().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace strobe::internal
