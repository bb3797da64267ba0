#include "strobe/testing/manual_thread.h"

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

TEST(ManualThread, ATimerCreditsItsExpiriesWithOverrunsInOneCapture) {
  ManualThread thread;
  thread.RunFor(1000);
  thread.Begin();
  ASSERT_TRUE(thread.StartCpuTimer(3, 10));
  EXPECT_FALSE(thread.StartCpuTimer(3, 10)) << "a thread has one timer";
  thread.RunFor(2);
  EXPECT_EQ(thread.captures(), 0);
  thread.RunFor(1);
  EXPECT_EQ(thread.credited_weight(), 10);
  thread.RunFor(25);
  EXPECT_EQ(thread.credited_weight(), 30);
  EXPECT_EQ(thread.captures(), 2);
  thread.End();
  thread.RunFor(100);
  EXPECT_EQ(thread.credited_weight(), 30);
}

TEST(ManualThread, RequestsAddUpUntilACaptureServesThem) {
  ManualThread thread;
  thread.Begin();
  EXPECT_FALSE(thread.Capture());
  EXPECT_FALSE(thread.ExtendLast(1)) << "nothing was captured yet";
  thread.Request(2, true);
  thread.Request(3, true);
  EXPECT_TRUE(thread.request_pending());
  EXPECT_EQ(thread.credited_weight(), 0);
  EXPECT_EQ(thread.last_capture_cpu_ns(), -1);
  thread.return_cost_ns = 7;
  thread.RunFor(100);
  ASSERT_TRUE(thread.Capture());
  EXPECT_EQ(thread.credited_weight(), 5);
  EXPECT_EQ(thread.last_capture_cpu_ns(), 100);
  EXPECT_EQ(thread.CpuTimeNs(), 107);
  EXPECT_TRUE(thread.ExtendLast(1));
  EXPECT_EQ(thread.credited_weight(), 6);
  EXPECT_EQ(thread.extended(), 1);
}

TEST(ManualThread, BeginForgetsWhatWasBefore) {
  ManualThread thread;
  thread.Begin();
  thread.Request(2, true);
  thread.RunFor(50);
  thread.Capture();
  thread.Begin();
  EXPECT_EQ(thread.attach_cpu_ns(), 50);
  EXPECT_EQ(thread.credited_weight(), 0);
  EXPECT_EQ(thread.last_capture_cpu_ns(), -1);
  EXPECT_FALSE(thread.ExtendLast(1));
}

}  // namespace
}  // namespace strobe::testing
