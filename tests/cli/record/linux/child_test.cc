#include "../../../../src/cli/record/linux/child.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

constexpr std::chrono::milliseconds kPeriod(10);

Child::Program Shell(const std::string& script) {
  return {.path = "/bin/sh", .arguments = {"sh", "-c", script}};
}

class ChildTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string PathOf(const char* name) const {
    return (directory_.path() / name).string();
  }
  [[nodiscard]] std::string TextOf(const char* name) const {
    std::ifstream file(PathOf(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  testing::TemporaryDirectory directory_;
};

TEST_F(ChildTest, ThisProcessEndsAsTheProgramDoes) {
  Child child;
  ASSERT_EQ(child.Fork(Shell("exit 7")), 0);
  EXPECT_FALSE(child.has_ended());
  ASSERT_EQ(child.Run(), 0);
  child.Await(kPeriod, [] {});
  EXPECT_TRUE(child.has_ended());
  child.ReleaseSignals();
  EXPECT_EQ(child.EndAsChildDid(), 7);
}

TEST_F(ChildTest, ASignalThatEndsTheProgramEndsThisProcess) {
  EXPECT_EXIT(
      {
        Child child;
        child.Fork(Shell("kill -TERM $$"));
        child.Run();
        child.Await(kPeriod, [] {});
        child.ReleaseSignals();
        std::_Exit(child.EndAsChildDid());
      },
      ::testing::KilledBySignal(SIGTERM), "");
}

TEST_F(ChildTest, AProgramThatIsNotRunNeverIs) {
  {
    Child child;
    ASSERT_EQ(child.Fork(Shell("touch " + PathOf("ran"))), 0);
    EXPECT_GT(child.id(), 0);
  }
  EXPECT_FALSE(std::filesystem::exists(PathOf("ran")));
}

TEST_F(ChildTest, WhatExecRefusesIsKnown) {
  Child child;
  ASSERT_EQ(child.Fork({.path = PathOf("none"), .arguments = {"none"}}), 0);
  EXPECT_EQ(child.Run(), ENOENT);
}

TEST_F(ChildTest, AFileWithoutAFormatIsGivenToTheShell) {
  std::ofstream(PathOf("script")) << "exit $(($1 + 1))\n";
  std::filesystem::permissions(PathOf("script"), std::filesystem::perms::owner_all);
  Child child;
  ASSERT_EQ(child.Fork({.path = PathOf("script"), .arguments = {"script", "4"}}), 0);
  ASSERT_EQ(child.Run(), 0);
  child.Await(kPeriod, [] {});
  EXPECT_EQ(child.EndAsChildDid(), 5);
}

TEST_F(ChildTest, VariablesAreTheProgramsAlone) {
  Child child;
  Child::Program program = Shell("test \"$STROBE_TEST_CHILD\" = 'a b'");
  program.variables = {{"STROBE_TEST_CHILD", "a b"}};
  ASSERT_EQ(child.Fork(program), 0);
  ASSERT_EQ(child.Run(), 0);
  child.Await(kPeriod, [] {});
  EXPECT_EQ(child.EndAsChildDid(), 0);
  EXPECT_EQ(std::getenv("STROBE_TEST_CHILD"), nullptr);
}

TEST_F(ChildTest, SignalsOfProcessesGoOnToTheProgram) {
  Child child;
  ASSERT_EQ(child.Fork(Shell("trap 'exit 3' USR1; echo > " + PathOf("ready") +
                             "; while :; do sleep 0.01; done")),
            0);
  ASSERT_EQ(child.Run(), 0);
  bool is_sent = false;
  child.Await(kPeriod, [&] {
    if (is_sent || !std::filesystem::exists(PathOf("ready"))) return;
    is_sent = true;
    kill(getpid(), SIGUSR1);
  });
  EXPECT_TRUE(is_sent);
  EXPECT_EQ(child.EndAsChildDid(), 3);
}

TEST_F(ChildTest, TheProgramHasTheMaskThatThisProcessHad) {
  sigset_t before;
  sigprocmask(SIG_SETMASK, nullptr, &before);
  {
    Child child;
    sigset_t during;
    sigprocmask(SIG_SETMASK, nullptr, &during);
    EXPECT_EQ(sigismember(&during, SIGTERM), 1);
    ASSERT_EQ(child.Fork(Shell("grep SigBlk /proc/self/status > " + PathOf("mask"))), 0);
    ASSERT_EQ(child.Run(), 0);
    child.Await(kPeriod, [] {});
  }
  sigset_t after;
  sigprocmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
  const std::string mask = TextOf("mask");
  ASSERT_NE(mask.find('\t'), std::string::npos) << mask;
  const auto blocked = std::strtoull(mask.c_str() + mask.find('\t'), nullptr, 16);
  EXPECT_EQ(static_cast<int>(blocked >> (SIGTERM - 1) & 1), sigismember(&before, SIGTERM));
}

// A shell that starts a process and ends. The process ends when the pipe is opened for writing.
class LeftProcessTest : public ChildTest {
 protected:
  using Clock = std::chrono::steady_clock;

  LeftProcessTest() { mkfifo(PathOf("pipe").c_str(), 0600); }
  // Runs it until the shell has ended.
  void RunShell() {
    child_.FollowTree();
    ASSERT_EQ(child_.Fork(Shell("(setsid sh -c ': < " + PathOf("pipe") + "' &); exit 5")), 0);
    ASSERT_EQ(child_.Run(), 0);
    while (!child_.has_ended())
      ASSERT_FALSE(child_.Await(
          kPeriod, [] {}, Clock::now() + kPeriod));
  }
  void EndLeft() const { const std::ofstream other_end(PathOf("pipe")); }

  Child child_;
};

TEST_F(LeftProcessTest, IsWaitedForLikeTheProgram) {
  RunShell();
  EXPECT_FALSE(child_.Await(
      kPeriod, [] {}, Clock::now()));
  EndLeft();
  EXPECT_TRUE(child_.Await(kPeriod, [] {}));
  EXPECT_EQ(child_.EndAsChildDid(), 5);
}

TEST_F(LeftProcessTest, IsNotWaitedForAfterASignalThatAsksForTheEnd) {
  RunShell();
  kill(getpid(), SIGINT);
  EXPECT_TRUE(child_.Await(kPeriod, [] {}));
  EXPECT_EQ(child_.EndAsChildDid(), 5);
  EndLeft();
}

// One that came while the program ran was the program's.
TEST_F(LeftProcessTest, IsWaitedForWhateverTheProgramWasSentBefore) {
  child_.FollowTree();
  ASSERT_EQ(child_.Fork(Shell("trap : HUP; (setsid sh -c ': < " + PathOf("pipe") + "' &); echo > " +
                              PathOf("ready") + "; while [ ! -e " + PathOf("go") +
                              " ]; do sleep 0.01; done")),
            0);
  ASSERT_EQ(child_.Run(), 0);
  bool is_sent = false;
  while (!child_.has_ended()) {
    ASSERT_FALSE(child_.Await(
        kPeriod, [] {}, Clock::now() + kPeriod));
    if (is_sent || !std::filesystem::exists(PathOf("ready"))) continue;
    is_sent = true;
    kill(getpid(), SIGHUP);
    ASSERT_FALSE(child_.Update());
    const std::ofstream go(PathOf("go"));
  }
  EXPECT_FALSE(child_.Await(
      kPeriod, [] {}, Clock::now()));
  EndLeft();
  EXPECT_TRUE(child_.Await(kPeriod, [] {}));
}

TEST_F(LeftProcessTest, IsNotWaitedForWhenNobodyFollows) {
  RunShell();
  child_.StopFollowing();
  EXPECT_TRUE(child_.Await(kPeriod, [] {}));
  EndLeft();
}

}  // namespace
}  // namespace strobe::internal
