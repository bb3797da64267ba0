#include "../../../../src/cli/record/linux/outside_recording.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "../../../../src/cli/profile/costs.h"
#include "../../../../src/process/linux/attach_request.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

int Connect(const std::string& folder) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder + "/").append(kAttachSocket).copy(address.sun_path, sizeof(address.sun_path) - 1);
  const int connection = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  return connect(connection, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0
             ? connection
             : -1;
}

// A child that asks as one that executes, and then executes `command` by the shell.
pid_t AskAndExecute(const std::string& folder, const char* command) {
  const pid_t child = fork();
  if (child != 0) return child;
  const int connection = Connect(folder);
  const AttachRequest request{.id = getpid(), .time = AttachTime::kAtExec};
  char answer = 0;
  if (send(connection, &request, sizeof(request), 0) > 0 && recv(connection, &answer, 1, 0) == 1)
    execl("/bin/sh", "sh", "-c", command, nullptr);
  _exit(127);
}

int StatusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

RecordOptions SmallRings() {
  RecordOptions options;
  options.command = {"/some/program"};
  options.ring_kib = 64;
  return options;
}

class OutsideRecordingTest : public ::testing::Test {
 protected:
  testing::TemporaryDirectory folder_;
  const std::string path_ = folder_.path().string();
  const RecordOptions options_ = SmallRings();
};

constexpr const char* kWork = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; exit 3";

TEST_F(OutsideRecordingTest, WhatAsksIsRecordedFromItsExecOn) {
  OutsideRecording outside(options_, path_);
  EXPECT_FALSE(outside.Take().has_value()) << "nothing has asked";
  outside.Begin();
  EXPECT_EQ(StatusOf(AskAndExecute(path_, kWork)), 3);
  outside.End();
  if (!outside.refusal().empty()) GTEST_SKIP() << outside.refusal();
  const std::optional<LoadedProfile> loaded = outside.Take();
  ASSERT_TRUE(loaded.has_value());
  ASSERT_EQ(loaded->profile.value_types.size(), 2u);
  EXPECT_EQ(loaded->profile.value_types[1].type, "cpu");
  EXPECT_GT(ColumnSum(loaded->profile, 1), 0);
  EXPECT_FALSE(outside.Take().has_value()) << "it has been taken";
}

TEST_F(OutsideRecordingTest, WhatIsOverAnswersNobody) {
  OutsideRecording outside(options_, path_);
  outside.Begin();
  outside.End();
  EXPECT_EQ(Connect(path_), -1) << "a process does not wait";
  OutsideRecording nowhere(options_, "/no/such/folder");
  nowhere.Begin();
  EXPECT_FALSE(nowhere.Take().has_value());
}

TEST_F(OutsideRecordingTest, AMessageThatIsNoRequestEndsTheConnection) {
  OutsideRecording outside(options_, path_);
  outside.Begin();
  char byte = 0;
  const int connection = Connect(path_);
  EXPECT_EQ(send(connection, "?", 1, 0), 1);
  EXPECT_EQ(recv(connection, &byte, 1, 0), 0);
  // Nor does a process speak of one that it has not started.
  const AttachRequest request{.id = 1, .time = AttachTime::kAfterwards};
  const int other = Connect(path_);
  EXPECT_EQ(send(other, &request, sizeof(request), 0), ssize_t{sizeof(request)});
  EXPECT_EQ(recv(other, &byte, 1, 0), 0);
  close(connection);
  close(other);
}

}  // namespace
}  // namespace strobe::internal
