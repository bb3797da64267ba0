#include "../../../../src/cli/record/linux/outside_recording.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <string>
#include <thread>
#include <vector>

#include "../../../../src/cli/profile/costs.h"
#include "../../../../src/process/linux/attach_request.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

int Socket() { return socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0); }

// `connection`, or -1.
int Connect(const std::string& folder, int connection = Socket()) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder + "/").append(kAttachSocket).copy(address.sun_path, sizeof(address.sun_path) - 1);
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
  const OutsideRefusal refusal = outside.TakeRefusal();
  if (refusal.programs > 0) GTEST_SKIP() << refusal.reason;
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
  const AttachRequest request{.id = 1, .time = AttachTime::kNow};
  const int other = Connect(path_);
  EXPECT_EQ(send(other, &request, sizeof(request), 0), ssize_t{sizeof(request)});
  EXPECT_EQ(recv(other, &byte, 1, 0), 0);
  close(connection);
  close(other);
}

// Children that end when the test does.
class OutsideRecordingChildrenTest : public OutsideRecordingTest {
 protected:
  ~OutsideRecordingChildrenTest() override {
    close(ends_[1]);
    for (const pid_t child : children_) waitpid(child, nullptr, 0);
  }
  template <class Body>
  void Fork(Body body) {
    children_.push_back(fork());
    if (children_.back() != 0) return;
    close(ends_[1]);
    body();
    _exit(0);
  }
  // In a child.
  void AwaitEnd() const {
    char byte = 0;
    while (read(ends_[0], &byte, 1) > 0) continue;
  }
  // True once there are samples; false if events are refused.
  static bool AwaitSamples(OutsideRecording& outside) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (outside.samples() == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "neither a sample nor a refusal";
        return false;
      }
      if (const OutsideRefusal refusal = outside.TakeRefusal(); refusal.programs > 0) {
        std::puts(refusal.reason.c_str());
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

  std::array<int, 2> ends_{-1, -1};
  const bool has_ends_ = pipe(ends_.data()) == 0;
  std::vector<pid_t> children_;
};

TEST_F(OutsideRecordingChildrenTest, AnExecEndsAnAskWhoseConnectionAForkHasInherited) {
  OutsideRecording outside(options_, path_);
  outside.Begin();
  Fork([&] {
    const int connection = Connect(path_);
    const AttachRequest request{.id = gettid(), .time = AttachTime::kAfterExec};
    // The command has the request when it takes the next one, whose connection ends by that.
    static_cast<void>(send(connection, &request, sizeof(request), 0) > 0);
    const int other = Connect(path_);
    char byte = 0;
    static_cast<void>(send(other, "?", 1, 0) > 0);
    static_cast<void>(recv(other, &byte, 1, 0) == 0);
    if (fork() == 0) {
      AwaitEnd();
      _exit(0);
    }
    dup2(ends_[0], STDIN_FILENO);
    const char* const work = "exec 3<&0; (cat <&3 >/dev/null; kill $$) & while :; do :; done";
    execl("/bin/sh", "sh", "-c", work, nullptr);
  });
  if (!AwaitSamples(outside)) GTEST_SKIP() << "events are refused";
}

TEST_F(OutsideRecordingChildrenTest, WithoutAFreeDescriptorItWaitsAndUsesNoCpuTime) {
  OutsideRecording outside(options_, path_);
  outside.Begin();
  EXPECT_FALSE(outside.Take().has_value()) << "its thread runs";
  const int connection = Socket();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int first_free = dup(STDERR_FILENO);
  close(first_free);
  const rlimit none{static_cast<rlim_t>(first_free), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto begin = std::chrono::steady_clock::now();
  const std::clock_t used_before = std::clock();
  const AttachRequest request{.id = gettid(), .time = AttachTime::kAtExec};
  EXPECT_EQ(Connect(path_, connection), connection);
  EXPECT_GT(send(connection, &request, sizeof(request), 0), 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const double used_s = static_cast<double>(std::clock() - used_before) / CLOCKS_PER_SEC;
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(used_s, passed.count() / 4);
  char byte = 1;
  EXPECT_EQ(recv(connection, &byte, 1, 0), 1) << "it is answered when there is one";
  close(connection);
}

TEST_F(OutsideRecordingChildrenTest, AProcessOfAnotherNamespaceIsKnownByTheSystemsWord) {
  OutsideRecording outside(options_, path_);
  outside.Begin();
  Fork([&] {
    if (unshare(CLONE_NEWPID) != 0) _exit(1);
    const pid_t first = fork();  // of the namespace
    if (first != 0) {
      waitpid(first, nullptr, 0);
      _exit(0);
    }
    const pid_t child = fork();  // which calls it by an id of the namespace
    if (child == 0) {
      for (volatile int i = 0; getppid() == 1;) i = i + 1;
      _exit(0);
    }
    const int connection = Connect(path_);
    const AttachRequest request{.id = child, .time = AttachTime::kNow};
    static_cast<void>(send(connection, &request, sizeof(request), 0) > 0);
    AwaitEnd();
  });
  if (geteuid() != 0) GTEST_SKIP() << "only root can make a namespace";
  if (!AwaitSamples(outside)) GTEST_SKIP() << "events are refused";
}

}  // namespace
}  // namespace strobe::internal
