#include "child.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace strobe::internal {
namespace {

constexpr const char* kShell = "/bin/sh";
constexpr long kNsInMs = 1'000'000;

// What the terminal or the kernel sends is not sent on, nor what stops this process at once.
sigset_t WatchedSignals() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGPIPE})
    sigdelset(&signals, signal);
  return signals;
}

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  pointers.reserve(texts.size() + 1);
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

Child::Child() {
  const sigset_t watched = WatchedSignals();
  sigprocmask(SIG_BLOCK, &watched, &mask_before_);
  // If this process was started with SIGCHLD ignored, a child would leave no status.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_action_before_);
}

Child::~Child() {
  // What the terminal has sent to both, the program has dealt with.
  const sigset_t watched = WatchedSignals();
  constexpr timespec kNow{};
  while (sigtimedwait(&watched, nullptr, &kNow) > 0) {
  }
  sigaction(SIGCHLD, &child_action_before_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Child::Exec(int error_pipe, const std::string& path,
                 const std::vector<std::string>& arguments) const {
  sigaction(SIGCHLD, &child_action_before_, nullptr);
  sigprocmask(SIG_SETMASK, &mask_before_, nullptr);
  execv(path.c_str(), Pointers(arguments).data());
  if (errno == ENOEXEC) {
    std::vector<std::string> of_shell{kShell, path};
    of_shell.insert(of_shell.end(), arguments.begin() + 1, arguments.end());
    execv(kShell, Pointers(of_shell).data());
  }
  const int error = errno;
  static_cast<void>(write(error_pipe, &error, sizeof(error)) == 0);
  _exit(1);
}

int Child::Start(const std::string& path, const std::vector<std::string>& arguments,
                 const std::vector<std::pair<std::string, std::string>>& variables) {
  std::array<int, 2> error_pipe{};
  if (pipe2(error_pipe.data(), O_CLOEXEC) != 0) return errno;
  id_ = fork();
  if (id_ == 0) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    Exec(error_pipe[1], path, arguments);
  }
  int error = id_ < 0 ? errno : 0;
  close(error_pipe[1]);
  // The pipe ends without a byte if exec succeeds.
  if (id_ > 0 && read(error_pipe[0], &error, sizeof(error)) == sizeof(error))
    waitpid(id_, nullptr, 0);
  close(error_pipe[0]);
  return error;
}

bool Child::Reap() {
  while (waitpid(id_, &wait_status_, WNOHANG | WUNTRACED) == id_) {
    if (!WIFSTOPPED(wait_status_)) return true;
    raise(SIGSTOP);
    kill(id_, SIGCONT);
  }
  return false;
}

void Child::PassOn(const siginfo_t& signal) const {
  if (signal.si_code > 0 || signal.si_signo == SIGCHLD) return;
  if (signal.si_code == SI_QUEUE) {
    sigqueue(id_, signal.si_signo, signal.si_value);
  } else {
    kill(id_, signal.si_signo);
  }
}

void Child::Await(std::chrono::milliseconds period, const std::function<void()>& pause) {
  const sigset_t watched = WatchedSignals();
  const timespec timeout{.tv_sec = period.count() / 1000,
                         .tv_nsec = period.count() % 1000 * kNsInMs};
  while (!Reap()) {
    siginfo_t signal{};
    const int number = sigtimedwait(&watched, &signal, &timeout);
    if (number > 0) PassOn(signal);
    if (number < 0 && errno == EAGAIN) pause();
  }
}

int Child::EndAlike() const {
  if (!WIFSIGNALED(wait_status_)) return WEXITSTATUS(wait_status_);
  const int signal = WTERMSIG(wait_status_);
  // The program's core says what happened; one of this process would say nothing.
  prctl(PR_SET_DUMPABLE, 0);
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  sigprocmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  return 128 + signal;
}

}  // namespace strobe::internal
