#include "command_process.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

struct Pipe {
  Descriptor read;
  Descriptor write;
};

absl::StatusOr<Pipe> MakePipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("no pipe: ", std::strerror(errno)));
  return Pipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

template <class T>
bool ReadWhole(int descriptor, T& value) {
  ssize_t count = 0;
  do count = read(descriptor, &value, sizeof(value));
  while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof(value));
}

// In the child. The pipes end with the exec.
[[noreturn]] void RunWhenTold(char* const* arguments, const sigset_t& signals, const Pipe& go,
                              const Pipe& error) {
  constexpr int kNotRun = 127;
  char told = 0;
  if (!ReadWhole(go.read.get(), told)) _exit(kNotRun);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(arguments[0], arguments);
  const int number = errno;
  [[maybe_unused]] const ssize_t count = write(error.write.get(), &number, sizeof(number));
  _exit(kNotRun);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CommandProcess>> CommandProcess::Start(
    std::vector<std::string> command, const sigset_t& signals) {
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& argument : command) arguments.push_back(argument.data());
  arguments.push_back(nullptr);
  absl::StatusOr<Pipe> go = MakePipe();
  if (!go.ok()) return go.status();
  absl::StatusOr<Pipe> error = MakePipe();
  if (!error.ok()) return error.status();
  const pid_t id = fork();
  if (id < 0) return absl::ResourceExhaustedError(absl::StrCat("fork: ", std::strerror(errno)));
  if (id == 0) {
    go->write.Close();
    RunWhenTold(arguments.data(), signals, *go, *error);
  }
  return std::unique_ptr<CommandProcess>(
      new CommandProcess(id, std::move(go->write), std::move(error->read)));
}

CommandProcess::~CommandProcess() {
  if (!go_.is_open()) return;
  go_.Close();
  Wait();
}

absl::Status CommandProcess::Run() {
  const char told = 1;
  [[maybe_unused]] const ssize_t count = write(go_.get(), &told, sizeof(told));
  go_.Close();
  int error = 0;
  if (!ReadWhole(error_.get(), error)) return absl::OkStatus();
  Wait();
  return error == ENOENT ? absl::NotFoundError("there is no such command")
                         : absl::PermissionDeniedError(std::strerror(error));
}

bool CommandProcess::HasEnded() {
  if (!status_.has_value()) Reap(WNOHANG);
  return status_.has_value();
}

void CommandProcess::Wait() {
  if (!status_.has_value()) Reap(0);
}

void CommandProcess::Reap(int flags) {
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(id_, &status, flags);
  while (ended < 0 && errno == EINTR);
  if (ended == id_ || ended < 0) status_ = status;  // below 0: nothing is left to wait for
}

int ShellStatus(int wait_status) {
  constexpr int kKilled = 128;
  return WIFSIGNALED(wait_status) ? kKilled + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

int EndLike(int wait_status) {
  if (!WIFSIGNALED(wait_status)) return WEXITSTATUS(wait_status);
  const int number = WTERMSIG(wait_status);
  const rlimit no_core{};  // the command has left its own
  setrlimit(RLIMIT_CORE, &no_core);
  std::signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  return ShellStatus(wait_status);
}

}  // namespace strobe::internal
