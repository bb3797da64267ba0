#include "strobe/testing/fakes/manual_thread.h"

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
  thread.Request(0);
  EXPECT_FALSE(thread.Capture()) << "nothing is requested";
  thread.Request(2);
  thread.Request(3);
  EXPECT_EQ(thread.requests(), 2);
  EXPECT_EQ(thread.pending(), 5);
  EXPECT_EQ(thread.credited_weight(), 0);
  ASSERT_TRUE(thread.Capture());
  EXPECT_EQ(thread.credited_weight(), 5);
  EXPECT_EQ(thread.pending(), 0);
}

TEST(ManualThread, BeginForgetsWhatWasBefore) {
  ManualThread thread;
  thread.Begin();
  thread.Request(2);
  thread.RunFor(50);
  thread.Capture();
  thread.Begin();
  EXPECT_EQ(thread.attach_cpu_ns(), 50);
  EXPECT_EQ(thread.credited_weight(), 0);
}

}  // namespace
}  // namespace strobe::testing
