#include "../../../src/platform/linux/signals/ending_signals.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>

#include "gtest/gtest.h"
#include "strobe/platform/linux/linux_ending_signals.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kPatienceNs = 60'000'000'000;

struct sigaction ActionOf(int signal) {
  struct sigaction action {};
  EXPECT_EQ(sigaction(signal, nullptr, &action), 0);
  return action;
}

class EndingSignalsTest : public ::testing::Test {
 protected:
  EndingSignalsTest() { SetDefault(); }
  ~EndingSignalsTest() override { SetDefault(); }
  static void SetDefault() {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
  }
};

TEST_F(EndingSignalsTest, StandForTheDefaultActionWhileTheEndIsAwaited) {
  EXPECT_EQ(DelayedEnd(SIGTERM), nullptr);
  LinuxEndingSignals signals;
  ASSERT_TRUE(signals.Take(kPatienceNs));
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) {
    ASSERT_NE(DelayedEnd(signal), nullptr) << signal;
    EXPECT_TRUE(DelaysEnd(*DelayedEnd(signal)));
    EXPECT_TRUE(DelaysEnd(ActionOf(signal)));
  }
  for (const int signal : {SIGQUIT, SIGSEGV, 0, -1, 1000}) EXPECT_EQ(DelayedEnd(signal), nullptr);
  signals.GiveBack();
  EXPECT_EQ(DelayedEnd(SIGTERM), nullptr);
  EXPECT_FALSE(DelaysEnd(ActionOf(SIGTERM)));
}

TEST_F(EndingSignalsTest, StandForASignalThatTheProgramHandlesToo) {
  signal(SIGINT, SIG_IGN);
  LinuxEndingSignals signals;
  ASSERT_TRUE(signals.Take(kPatienceNs));
  EXPECT_FALSE(DelaysEnd(ActionOf(SIGINT)));
  EXPECT_NE(DelayedEnd(SIGINT), nullptr) << "the program may ask for the default action later";
}

TEST_F(EndingSignalsTest, OtherActionsDelayNothing) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  EXPECT_FALSE(DelaysEnd(action));
  LinuxEndingSignals signals;
  ASSERT_TRUE(signals.Take(kPatienceNs));
  action = *DelayedEnd(SIGTERM);
  action.sa_flags |= SA_SIGINFO;
  EXPECT_FALSE(DelaysEnd(action)) << "a handler of another kind";
}

TEST_F(EndingSignalsTest, AForksChildAwaitsNothing) {
  LinuxEndingSignals signals;
  ASSERT_TRUE(signals.Take(kPatienceNs));
  const pid_t child = fork();
  if (child == 0) _exit(DelayedEnd(SIGTERM) == nullptr ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_NE(DelayedEnd(SIGTERM), nullptr);
}

}  // namespace
}  // namespace strobe::internal
