#include "../../../../src/cli/record/linux/signal_queue.h"

#include <poll.h>
#include <unistd.h>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

sigset_t Only(int signal) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  return signals;
}
bool IsBlocked(int signal) {
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  return sigismember(&blocked, signal) == 1;
}
bool IsReadable(const SignalQueue& queue) {
  pollfd polled{.fd = queue.descriptor(), .events = POLLIN, .revents = 0};
  return poll(&polled, 1, 0) == 1;
}

TEST(SignalQueueTest, SignalsAreReadInstead) {
  {
    const SignalQueue queue(Only(SIGUSR1));
    EXPECT_TRUE(IsBlocked(SIGUSR1));
    EXPECT_FALSE(IsReadable(queue));
    EXPECT_FALSE(queue.Next().has_value());
    kill(getpid(), SIGUSR1);
    EXPECT_TRUE(IsReadable(queue));
    const auto signal = queue.Next();
    ASSERT_TRUE(signal.has_value());
    EXPECT_EQ(signal->ssi_signo, static_cast<unsigned>(SIGUSR1));
    EXPECT_EQ(signal->ssi_pid, static_cast<unsigned>(getpid()));
    EXPECT_FALSE(queue.Next().has_value());
  }
  EXPECT_FALSE(IsBlocked(SIGUSR1));
}

TEST(SignalQueueTest, WhatIsNotReadIsDropped) {
  {
    const SignalQueue queue(Only(SIGUSR1));
    kill(getpid(), SIGUSR1);
  }
  EXPECT_FALSE(IsBlocked(SIGUSR1)) << "its default action would have ended this process";
}

TEST(SignalQueueTest, TheMaskBeforeComesBack) {
  sigset_t mine = Only(SIGUSR2);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &mine, &before);
  {
    const SignalQueue queue(Only(SIGUSR1));
    EXPECT_EQ(sigismember(&queue.before(), SIGUSR2), 1);
    EXPECT_EQ(sigismember(&queue.before(), SIGUSR1), 0);
  }
  EXPECT_TRUE(IsBlocked(SIGUSR2));
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace strobe::internal
