#include "strobe/platform/linux/linux_signal_inbox.h"

#include <signal.h>
#include <unistd.h>

#include <thread>

#include "gtest/gtest.h"

namespace strobe {
namespace {

int RealTimeSignal() { return SIGRTMAX - 3; }

struct sigaction ActionOf(int signal) {
  struct sigaction action {};
  EXPECT_EQ(sigaction(signal, nullptr, &action), 0);
  return action;
}
void OwnHandler(int /*signal*/) {}

TEST(LinuxSignalInbox, WaitsForASignalAndGivesItBack) {
  {
    LinuxSignalInbox inbox;
    ASSERT_TRUE(inbox.Open(RealTimeSignal()).ok());
    // Signals that come together are one, so the next Wait waits for the next one.
    for (int i = 0; i < 3; ++i) ASSERT_EQ(raise(RealTimeSignal()), 0);
    EXPECT_TRUE(inbox.Wait());
    ASSERT_EQ(raise(RealTimeSignal()), 0);
    EXPECT_TRUE(inbox.Wait());
    std::thread closer([&] { inbox.Close(); });
    EXPECT_FALSE(inbox.Wait());
    closer.join();
  }
  EXPECT_EQ(ActionOf(RealTimeSignal()).sa_handler, SIG_DFL);
}

TEST(LinuxSignalInbox, LeavesAHandlerOfTheProgramAlone) {
  ASSERT_NE(signal(RealTimeSignal(), &OwnHandler), SIG_ERR);
  {
    LinuxSignalInbox inbox;
    EXPECT_EQ(inbox.Open(RealTimeSignal()).code(), absl::StatusCode::kFailedPrecondition);
  }
  EXPECT_EQ(ActionOf(RealTimeSignal()).sa_handler, &OwnHandler);
  ASSERT_NE(signal(RealTimeSignal(), SIG_DFL), SIG_ERR);
}

TEST(LinuxSignalInbox, LeavesAHandlerThatTheProgramInstalledSince) {
  {
    LinuxSignalInbox inbox;
    ASSERT_TRUE(inbox.Open(RealTimeSignal()).ok());
    ASSERT_NE(signal(RealTimeSignal(), &OwnHandler), SIG_ERR);
  }
  EXPECT_EQ(ActionOf(RealTimeSignal()).sa_handler, &OwnHandler);
  ASSERT_NE(signal(RealTimeSignal(), SIG_DFL), SIG_ERR);
}

TEST(LinuxSignalInbox, ASignalHasOneInboxAtATime) {
  {
    LinuxSignalInbox first;
    ASSERT_TRUE(first.Open(RealTimeSignal()).ok());
    LinuxSignalInbox second;
    EXPECT_EQ(second.Open(RealTimeSignal()).code(), absl::StatusCode::kFailedPrecondition);
  }
  LinuxSignalInbox third;
  EXPECT_TRUE(third.Open(RealTimeSignal()).ok());
}

TEST(LinuxSignalInbox, RefusesWhatIsNoSignal) {
  LinuxSignalInbox inbox;
  EXPECT_EQ(inbox.Open(65).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(inbox.Open(SIGKILL).ok());
  inbox.Close();
}

}  // namespace
}  // namespace strobe
