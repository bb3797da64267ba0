#include "strobe/platform/linux/linux_ending_signals.h"

#include <signal.h>

#include <thread>

#include "gtest/gtest.h"

// What a signal does is tested in tests/integration/ending_signals_test.cc: it ends the process.
namespace strobe {
namespace {

constexpr std::int64_t kPatienceNs = 60'000'000'000;

using Handler = void (*)(int);
Handler HandlerOf(int signal) {
  struct sigaction action {};
  EXPECT_EQ(sigaction(signal, nullptr, &action), 0);
  return action.sa_handler;
}
void HandlerOfProgram(int /*signal*/) {}

class LinuxEndingSignalsTest : public ::testing::Test {
 protected:
  LinuxEndingSignalsTest() { SetAll(SIG_DFL); }
  ~LinuxEndingSignalsTest() override { SetAll(SIG_DFL); }

  static void SetAll(Handler handler) {
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) ::signal(signal, handler);
  }
};

TEST_F(LinuxEndingSignalsTest, TheSignalsAreTakenAndGivenBack) {
  // A shell without job control lets its background ignore it.
  const auto quit_before = HandlerOf(SIGQUIT);
  {
    LinuxEndingSignals signals;
    ASSERT_TRUE(signals.Take(kPatienceNs));
    for (const int signal : {SIGHUP, SIGINT, SIGTERM}) EXPECT_NE(HandlerOf(signal), SIG_DFL);
    EXPECT_EQ(HandlerOf(SIGQUIT), quit_before) << "a core is asked for";
    EXPECT_TRUE(signals.Take(kPatienceNs)) << "once more";
  }
  for (const int signal : {SIGHUP, SIGINT, SIGTERM}) EXPECT_EQ(HandlerOf(signal), SIG_DFL);
}

TEST_F(LinuxEndingSignalsTest, OnlyThoseAreTakenThatHaveTheirDefaultAction) {
  signal(SIGINT, &HandlerOfProgram);
  signal(SIGHUP, SIG_IGN);
  {
    LinuxEndingSignals signals;
    ASSERT_TRUE(signals.Take(kPatienceNs));
    EXPECT_EQ(HandlerOf(SIGINT), &HandlerOfProgram);
    EXPECT_EQ(HandlerOf(SIGHUP), SIG_IGN);
    signal(SIGTERM, &HandlerOfProgram);
  }
  EXPECT_EQ(HandlerOf(SIGTERM), &HandlerOfProgram) << "what the program has set since stays";
  SetAll(SIG_IGN);
  EXPECT_FALSE(LinuxEndingSignals().Take(kPatienceNs)) << "there are none";
}

TEST_F(LinuxEndingSignalsTest, AProcessHasOneObjectAtATime) {
  {
    LinuxEndingSignals first;
    ASSERT_TRUE(first.Take(kPatienceNs));
    LinuxEndingSignals second;
    EXPECT_FALSE(second.Take(kPatienceNs));
    second.Close();
  }
  LinuxEndingSignals third;
  EXPECT_TRUE(third.Take(kPatienceNs));
}

TEST_F(LinuxEndingSignalsTest, CloseEndsTheWait) {
  LinuxEndingSignals signals;
  ASSERT_TRUE(signals.Take(kPatienceNs));
  std::thread closer([&] { signals.Close(); });
  EXPECT_FALSE(signals.Await());
  closer.join();
}

}  // namespace
}  // namespace strobe
