#include "../../src/preload/signal_masks.h"

#include <pthread.h>
#include <unistd.h>

#include <cstdint>
#include <thread>

#include "../../src/platform/linux/signals/signal_handler.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr int kOurs = SIGURG;

sigset_t All() {
  sigset_t all;
  sigfillset(&all);
  return all;
}
sigset_t Only(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  return only;
}
bool IsIn(const sigset_t& set, int signal) { return sigismember(&set, signal) == 1; }

sigset_t MaskOfSystem() {
  sigset_t mask;
  pthread_sigmask(SIG_BLOCK, nullptr, &mask);
  return mask;
}
sigset_t MaskOfProgram() {
  sigset_t mask;
  EXPECT_EQ(SetMaskOfProgram(pthread_sigmask, SIG_BLOCK, nullptr, &mask), 0);
  return mask;
}

// Runs the body on a thread that blocks all signals, in a process whose profiler has its handler.
template <class Body>
void OnThread(const Body& body) {
  ASSERT_TRUE(InstallSignalHandler(kOurs).ok());
  std::thread([&body] {
    const sigset_t all = All();
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    TakeMask();
    body();
  }).join();
}

TEST(SignalMasks, TheProfilersSignalComesThoughTheProgramBlocksIt) {
  OnThread([] {
    EXPECT_FALSE(IsIn(MaskOfSystem(), kOurs));
    EXPECT_TRUE(IsIn(MaskOfSystem(), SIGUSR1));
    EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
  });
}

TEST(SignalMasks, EachChangeIsSeenByTheProgramAsItIsMade) {
  OnThread([] {
    const sigset_t ours = Only(kOurs);
    const sigset_t all = All();
    sigset_t before;
    for (const auto next : {&pthread_sigmask, &sigprocmask}) {
      EXPECT_EQ(SetMaskOfProgram(*next, SIG_UNBLOCK, &ours, &before), 0);
      EXPECT_TRUE(IsIn(before, kOurs));
      EXPECT_FALSE(IsIn(MaskOfProgram(), kOurs));
      EXPECT_EQ(SetMaskOfProgram(*next, SIG_BLOCK, &ours, &before), 0);
      EXPECT_FALSE(IsIn(before, kOurs));
      EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
      const sigset_t other = Only(SIGUSR1);
      EXPECT_EQ(SetMaskOfProgram(*next, SIG_SETMASK, &other, nullptr), 0);
      EXPECT_FALSE(IsIn(MaskOfProgram(), kOurs));
      EXPECT_EQ(SetMaskOfProgram(*next, SIG_SETMASK, &all, nullptr), 0);
      EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
      EXPECT_FALSE(IsIn(MaskOfSystem(), kOurs));
    }
    EXPECT_NE(SetMaskOfProgram(pthread_sigmask, -1, &ours, nullptr), 0);
    EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
  });
}

TEST(SignalMasks, AThreadThatWaitsForTheSignalItselfGetsIt) {
  OnThread([] {
    EXPECT_FALSE(AwaitsProfilersSignal(Only(SIGUSR1)));
    EXPECT_TRUE(AwaitsProfilersSignal(All()));
    pthread_kill(pthread_self(), kOurs);  // given back by the handler
    EXPECT_TRUE(AwaitsProfilersSignal(All()));
    BlockAwaited();
    EXPECT_FALSE(AwaitsProfilersSignal(All()));
    EXPECT_TRUE(IsIn(MaskOfSystem(), kOurs));
    TakeMask();  // registers anew
    EXPECT_TRUE(IsIn(MaskOfSystem(), kOurs));
    const sigset_t all = All();
    int got = 0;
    EXPECT_EQ(sigwait(&all, &got), 0);
    EXPECT_EQ(got, kOurs);
  });
}

TEST(SignalMasks, AThreadInheritsWhatItsCreatorHides) {
  OnThread([] {
    const std::uint64_t hidden = HiddenMask();
    EXPECT_NE(hidden, 0u);
    std::thread([hidden] {
      InheritMask(hidden);
      TakeMask();
      EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
      EXPECT_FALSE(IsIn(MaskOfSystem(), kOurs));
    }).join();
  });
}

TEST(SignalMasks, ASignalThatTheProgramHandlesIsItsOwn) {
  OnThread([] {
    struct sigaction ours {};
    ASSERT_EQ(sigaction(kOurs, nullptr, &ours), 0);
    struct sigaction own {};
    own.sa_handler = [](int /*signal*/) {};
    ASSERT_EQ(sigaction(kOurs, &own, nullptr), 0);
    GiveUpSignal(kOurs);
    EXPECT_TRUE(IsIn(MaskOfSystem(), kOurs));
    const sigset_t only = Only(kOurs);
    EXPECT_EQ(SetMaskOfProgram(pthread_sigmask, SIG_UNBLOCK, &only, nullptr), 0);
    EXPECT_EQ(SetMaskOfProgram(pthread_sigmask, SIG_BLOCK, &only, nullptr), 0);
    EXPECT_TRUE(IsIn(MaskOfSystem(), kOurs));
    sigaction(kOurs, &ours, nullptr);
  });
}

// Another thread has set the action.
TEST(SignalMasks, AThreadThatHidesASignalBlocksItAfterTheProgramHasTakenIt) {
  OnThread([] {
    struct sigaction ours {};
    ASSERT_EQ(sigaction(kOurs, nullptr, &ours), 0);
    struct sigaction own {};
    own.sa_handler = [](int /*signal*/) {};
    ASSERT_EQ(sigaction(kOurs, &own, nullptr), 0);
    EXPECT_FALSE(IsIn(MaskOfSystem(), kOurs));
    const sigset_t other = Only(SIGUSR1);
    EXPECT_EQ(SetMaskOfProgram(pthread_sigmask, SIG_UNBLOCK, &other, nullptr), 0);
    EXPECT_TRUE(IsIn(MaskOfSystem(), kOurs));
    EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
    sigaction(kOurs, &ours, nullptr);
  });
}

// It has its parent's memory, but a mask of its own.
TEST(SignalMasks, TheChildOfAVforkLeavesItsParentsAlone) {
  OnThread([] {
    const sigset_t none = {};
    const pid_t child = vfork();
    if (child == 0) {
      SetMaskOfProgram(sigprocmask, SIG_SETMASK, &none, nullptr);
      _exit(0);
    }
    EXPECT_GT(child, 0);
    EXPECT_TRUE(IsIn(MaskOfProgram(), kOurs));
  });
}

}  // namespace
}  // namespace strobe::internal
