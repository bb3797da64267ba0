#include "child.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

namespace strobe::internal {
namespace {

constexpr const char* kShell = "/bin/sh";
constexpr std::array kEndingSignals{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

// What the kernel sends for an error of this process itself ends it at once.
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

bool MakePipe(Descriptor& read_end, Descriptor& write_end) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  read_end = Descriptor(ends[0]);
  write_end = Descriptor(ends[1]);
  return true;
}

// False at the pipe's end.
template <class T>
bool ReadWhole(const Descriptor& pipe, T& value) {
  ssize_t count = 0;
  do count = read(pipe.get(), &value, sizeof(value));
  while (count < 0 && errno == EINTR);
  return count == static_cast<ssize_t>(sizeof(value));
}

}  // namespace

Child::Child() : signals_(std::in_place, WatchedSignals()) {
  // If this process was started with SIGCHLD ignored, a child would leave no status.
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &action, &child_action_before_);
}

Child::~Child() {
  if (tell_.is_open() && id_ > 0) {
    tell_.Close();
    waitpid(id_, nullptr, 0);
  }
  if (is_reaper_) prctl(PR_SET_CHILD_SUBREAPER, 0);
  sigaction(SIGCHLD, &child_action_before_, nullptr);
}

void Child::FollowTree() {
  is_reaper_ = prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
  is_following_ = is_reaper_;
}

void Child::Exec(const Program& program) const {
  for (const auto& [name, value] : program.variables) setenv(name.c_str(), value.c_str(), 1);
  execv(program.path.c_str(), Pointers(program.arguments).data());
  if (errno == ENOEXEC) {
    std::vector<std::string> of_shell{kShell, program.path};
    of_shell.insert(of_shell.end(), program.arguments.begin() + 1, program.arguments.end());
    execv(kShell, Pointers(of_shell).data());
  }
  const int error = errno;
  static_cast<void>(write(say_error_.get(), &error, sizeof(error)) == 0);
  _exit(1);
}

// In the child. Its ends of the pipes close with the exec.
void Child::RunWhenTold(const Program& program) const {
  char told = 0;
  if (!ReadWhole(told_, told)) _exit(1);
  sigaction(SIGCHLD, &child_action_before_, nullptr);
  sigprocmask(SIG_SETMASK, &signals_->before(), nullptr);
  Exec(program);
}

int Child::Fork(const Program& program) {
  if (!MakePipe(told_, tell_) || !MakePipe(said_error_, say_error_)) return errno;
  id_ = fork();
  if (id_ < 0) return errno;
  if (id_ == 0) {
    tell_.Close();
    RunWhenTold(program);
  }
  told_.Close();
  say_error_.Close();
  return 0;
}

int Child::Run() {
  const char told = 1;
  static_cast<void>(write(tell_.get(), &told, sizeof(told)) == 0);
  tell_.Close();
  int error = 0;
  // The pipe ends without a byte if exec succeeds.
  if (!ReadWhole(said_error_, error)) return 0;
  waitpid(id_, &wait_status_, 0);
  has_ended_ = true;
  return error;
}

void Child::Reap() {
  while (!has_ended_ || is_reaper_) {
    int status = 0;
    const pid_t id = waitpid(is_reaper_ ? -1 : id_, &status, WNOHANG | WUNTRACED);
    if (id <= 0) {
      has_tree_ended_ = id < 0 && errno == ECHILD;
      return;
    }
    if (id != id_) continue;
    if (WIFSTOPPED(status)) {
      raise(SIGSTOP);
      kill(id_, SIGCONT);
    } else {
      has_ended_ = true;
      wait_status_ = status;
    }
  }
}

void Child::PassOn(const signalfd_siginfo& signal) {
  const auto number = static_cast<int>(signal.ssi_signo);
  const bool asks_to_end = std::ranges::find(kEndingSignals, number) != kEndingSignals.end();
  is_asked_to_end_ = is_asked_to_end_ || (has_ended_ && asks_to_end);
  if (has_ended_ || signal.ssi_code > 0 || number == SIGCHLD) return;
  if (signal.ssi_code == SI_QUEUE) {
    sigqueue(id_, number, {.sival_ptr = reinterpret_cast<void*>(signal.ssi_ptr)});
  } else {
    kill(id_, number);
  }
}

// The signals first: one of them may say that the program has ended.
bool Child::Update() {
  while (const auto signal = signals_->Next()) PassOn(*signal);
  Reap();
  return has_ended_ && (!is_following_ || has_tree_ended_ || is_asked_to_end_);
}

bool Child::Await(std::chrono::milliseconds period, const std::function<void()>& pause,
                  std::chrono::steady_clock::time_point until) {
  pollfd signals{.fd = descriptor(), .events = POLLIN, .revents = 0};
  auto next_pause = std::chrono::steady_clock::now() + period;
  while (!Update()) {
    const auto now = std::chrono::steady_clock::now();
    if (now >= until) return false;
    if (now >= next_pause) {
      pause();
      next_pause = std::chrono::steady_clock::now() + period;
      continue;
    }
    const auto left = std::min(until, next_pause) - now;
    poll(&signals, 1, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(left).count()));
  }
  return true;
}

int Child::EndAsChildDid() const {
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
