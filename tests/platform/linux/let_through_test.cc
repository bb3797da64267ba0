#include "../../../src/platform/linux/signals/let_through.h"

#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

bool Blocks(int signal) {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return sigismember(&mask, signal) == 1;
}

// Runs the body on a thread that blocks all signals.
template <class Body>
void WithAllBlocked(const Body& body) {
  std::thread([&body] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    body();
  }).join();
}

TEST(LetThrough, LastsUntilItCeases) {
  WithAllBlocked([] {
    LetThrough(SIGURG);
    EXPECT_FALSE(Blocks(SIGURG));
    EXPECT_EQ(let_through, BitOf(SIGURG));
    CeaseToLetThrough(SIGURG);
    EXPECT_TRUE(Blocks(SIGURG));
    EXPECT_EQ(let_through, 0u);
  });
}

TEST(LetThrough, CeasesOnlyWhereItHasBegun) {
  CeaseToLetThrough(SIGURG);
  EXPECT_FALSE(Blocks(SIGURG));
}

void ExpectGivenBack(int code) {
  siginfo_t info{};
  info.si_signo = SIGURG;
  info.si_code = code;
  info.si_pid = getppid();
  ucontext_t context{};
  sigemptyset(&context.uc_sigmask);
  EXPECT_FALSE(GiveBack(SIGURG, &info, &context));  // the thread does not let it through
  EXPECT_EQ(sigismember(&context.uc_sigmask, SIGURG), 0);
  let_through = BitOf(SIGURG);
  EXPECT_FALSE(GiveBack(SIGUSR2, &info, &context));
  EXPECT_TRUE(GiveBack(SIGURG, &info, &context));
  EXPECT_EQ(let_through, 0u);
  EXPECT_EQ(sigismember(&context.uc_sigmask, SIGURG), 1);
  siginfo_t again{};
  sigset_t all;
  sigfillset(&all);
  const timespec none{};
  EXPECT_EQ(sigtimedwait(&all, &again, &none), SIGURG);
  // Beyond RLIMIT_SIGPENDING the system drops what the signal carries, but not the signal.
  if (again.si_pid != 0) {
    EXPECT_EQ(again.si_pid, getppid()) << code;
  }
}

// The first thread blocks the signal, too, so that only a thread that waits for it gets it.
TEST(GiveBack, SendsTheSignalOnceMoreToAThreadThatBlocksItFromThenOn) {
  WithAllBlocked([] { ExpectGivenBack(SI_TKILL); });
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, SIGURG);
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, &only, &before);
  for (const int code : {SI_USER, SI_KERNEL, SI_QUEUE}) {
    WithAllBlocked([code] { ExpectGivenBack(code); });
    ExpectGivenBack(code);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace
}  // namespace strobe::internal
