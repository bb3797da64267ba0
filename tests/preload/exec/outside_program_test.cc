#include "../../../src/preload/exec/outside_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "../../../src/process/linux/attach_request.h"
#include "../../../src/process/linux/call_filters.h"
#include "platform/test_system.h"
#include "process/linux/elf_bytes.h"

namespace strobe::internal {
namespace {

// The command's side: one process is answered at a time.
class Command {
 public:
  explicit Command(const std::filesystem::path& folder) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = (folder / kAttachSocket).string();
    EXPECT_LT(path.size(), sizeof(address.sun_path));
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  ~Command() { close(listener_); }
  void Accept() { connection_ = accept(listener_, nullptr, nullptr); }
  [[nodiscard]] AttachRequest Request() const {
    AttachRequest request;
    EXPECT_EQ(recv(connection_, &request, sizeof(request), 0), ssize_t{sizeof(request)});
    return request;
  }
  void Answer() const { EXPECT_EQ(send(connection_, "", 1, 0), 1); }
  // Bytes of the next message; 0 at the end, also if the process has left an answer unread: it
  // waits for one no longer than it says.
  [[nodiscard]] ssize_t Next() const {
    char byte = 0;
    ssize_t got = -1;
    do got = recv(connection_, &byte, sizeof(byte), 0);
    while (got < 0 && errno == ECONNRESET);
    return got;
  }
  [[nodiscard]] bool IsAsked() const {
    return accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK) >= 0;
  }
  void DoNotWait() const { EXPECT_EQ(fcntl(listener_, F_SETFL, O_NONBLOCK), 0); }

 private:
  const int listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  int connection_ = -1;
};

class OutsideProgramTest : public ::testing::Test {
 protected:
  OutsideProgramTest() { std::ofstream(path_, std::ios::binary) << ElfBytes(); }

  testing::TemporaryDirectory folder_;
  const std::string path_ = (folder_.path() / "static").string();
  std::string recording_ = "STROBE_RECORDING=" + (folder_.path() / "profiles").string();
  std::string preload_ = "LD_PRELOAD=/lib/libstrobe-preload.so:/lib/theirs.so";
  char* environment_[3] = {preload_.data(), recording_.data(), nullptr};
};

TEST_F(OutsideProgramTest, AThreadAsksBeforeItExecutes) {
  Command command(folder_.path());
  AttachRequest request;
  std::thread answers([&] {
    command.Accept();
    request = command.Request();
    command.Answer();
  });
  {
    errno = EDOM;
    OutsideProgram outside(path_.c_str(), environment_);
    outside.AskBeforeExec();
    EXPECT_EQ(errno, EDOM);
    answers.join();
    EXPECT_EQ(request.id, gettid());
    EXPECT_EQ(request.time, AttachTime::kAtExec);
    outside.SayExecFailed();
    EXPECT_EQ(command.Next(), 1) << "the program could not be executed";
  }
  EXPECT_EQ(command.Next(), 0) << "the connection ends";
}

TEST_F(OutsideProgramTest, AChildThatRunsAlreadyIsNamed) {
  Command command(folder_.path());
  {
    OutsideProgram outside(path_.c_str(), environment_);
    outside.AskAfterSpawn(12);
  }
  command.Accept();
  const AttachRequest request = command.Request();
  EXPECT_EQ(request.id, 12);
  EXPECT_EQ(request.time, AttachTime::kNow);
  EXPECT_EQ(command.Next(), 0);
}

TEST_F(OutsideProgramTest, ACommandThatDoesNotAnswerIsNotWaitedForForEver) {
  {
    OutsideProgram outside(path_.c_str(), environment_);
    outside.AskBeforeExec();  // there is none
    outside.SayExecFailed();
  }
  Command command(folder_.path());
  OutsideProgram outside(path_.c_str(), environment_);
  outside.AskBeforeExec();
  SUCCEED();
}

TEST_F(OutsideProgramTest, NothingIsAskedForOtherPrograms) {
  Command command(folder_.path());
  command.DoNotWait();
  const auto ask = [&](const std::string& path, char* const* environment) {
    OutsideProgram outside(path.c_str(), environment);
    outside.AskBeforeExec();
    outside.AskAfterSpawn(12);
    return command.IsAsked();
  };
  char* without_library[] = {recording_.data(), nullptr};
  EXPECT_FALSE(ask(path_, without_library)) << "who takes the library away wants that";
  char* without_recording[] = {preload_.data(), nullptr};
  EXPECT_FALSE(ask(path_, without_recording));
  EXPECT_FALSE(ask(path_, nullptr));
  const std::string dynamic = (folder_.path() / "dynamic").string();
  std::ofstream(dynamic, std::ios::binary) << ElfBytes("/lib64/ld-linux-x86-64.so.2");
  EXPECT_FALSE(ask(dynamic, environment_));
  EXPECT_FALSE(ask("/no/such/program", environment_));
  EXPECT_TRUE(ask(path_, environment_));
}

// As if the recording had begun with another filter than this thread has.
TEST_F(OutsideProgramTest, NothingIsAskedThatAFilterMayForbid) {
  Command command(folder_.path());
  command.DoNotWait();
  const std::string filters = "STROBE_RECORDING_FILTERS=";
  std::string as_before = filters + std::to_string(CountCallFilters());
  std::string another = filters + std::to_string(CountCallFilters() + 1);
  const auto ask = [&](std::string& variable) {
    char* environment[] = {preload_.data(), recording_.data(), variable.data(), nullptr};
    OutsideProgram outside(path_.c_str(), environment);
    outside.AskAfterSpawn(12);
    return command.IsAsked();
  };
  EXPECT_FALSE(ask(another));
  EXPECT_TRUE(ask(as_before));
}

// As a fork of another thread does meanwhile.
TEST_F(OutsideProgramTest, AConnectionEndsAlsoIfAForkHasInheritedIt) {
  Command command(folder_.path());
  pid_t heir = 0;
  {
    OutsideProgram outside(path_.c_str(), environment_);
    outside.AskAfterSpawn(12);
    heir = fork();
    if (heir == 0) {
      for (;;) pause();
    }
  }
  command.Accept();
  EXPECT_EQ(command.Request().id, 12);
  EXPECT_EQ(command.Next(), 0);
  kill(heir, SIGKILL);
  waitpid(heir, nullptr, 0);
}

TEST(ExecutedPathTest, NamesAreLookedUpInPath) {
  const testing::TemporaryDirectory folder;
  const std::string program = (folder.path() / "a-program").string();
  std::ofstream(program).put('x');
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  const std::string before = std::getenv("PATH");
  testing::SetVariable("PATH", "/no/such/folder::" + folder.path().string());
  EXPECT_STREQ(ExecutedPath("a-program").get(), program.c_str());
  EXPECT_STREQ(ExecutedPath("no-program").get(), "no-program");
  EXPECT_STREQ(ExecutedPath("./a-program").get(), "./a-program");
  testing::SetVariable("PATH", before);
}

}  // namespace
}  // namespace strobe::internal
