#include "strobe/worker/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/clock/system_clock.h"

extern char** environ;

namespace strobe::internal {
namespace {

constexpr std::size_t kChildStackBytes = 64 * 1024;
constexpr std::int64_t kPauseNs = 1'000'000;
// Where the child keeps the socket while it makes room for it.
constexpr int kFirstFreeDescriptor = 16;

// What the child needs, made before it begins: it shares the program's memory, and may call nothing
// but the system.
struct Child {
  const char* path;
  std::array<char*, 3> arguments;
  int socket;
  sigset_t mask{};  // of the calling thread
  int error = 0;
};

// Lets only the socket and standard error through: another open end of a pipe would keep it open.
bool KeepDescriptors(int socket) {
  const int kept = fcntl(socket, F_DUPFD, kFirstFreeDescriptor);
  const int nothing = open("/dev/null", O_RDWR);
  if (kept < 0 || nothing < 0) return false;
  if (dup2(nothing, STDIN_FILENO) < 0 || dup2(nothing, STDOUT_FILENO) < 0 ||
      dup2(kept, kWorkerSocket) < 0)
    return false;
#ifdef SYS_close_range
  syscall(SYS_close_range, kWorkerSocket + 1, ~0U, 0);
#endif
  return true;
}

int RunChild(void* argument) {
  auto& child = *static_cast<Child*>(argument);
  // The handlers of the program would run in its memory.
  struct sigaction ignore {};
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0 || action.sa_handler == SIG_IGN) continue;
    ignore.sa_handler = SIG_DFL;
    sigaction(signal, &ignore, nullptr);
  }
  setsid();
  if (KeepDescriptors(child.socket)) {
    sigprocmask(SIG_SETMASK, &child.mask, nullptr);
    execve(child.path, child.arguments.data(), environ);
  }
  child.error = errno;
  _exit(127);
}

absl::Status Refused(const char* what, int error) {
  return absl::UnavailableError(
      absl::StrCat("no worker process: ", what, ": ", std::strerror(error)));
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : process_id_(std::exchange(other.process_id_, -1)), socket_(std::move(other.socket_)) {}
WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this != &other) {
    End(0);
    process_id_ = std::exchange(other.process_id_, -1);
    socket_ = std::move(other.socket_);
  }
  return *this;
}
WorkerProcess::~WorkerProcess() { End(0); }

absl::StatusOr<WorkerProcess> WorkerProcess::Begin(const std::string& command) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Refused("socketpair", errno);
  WorkerProcess worker;
  worker.socket_ = WorkerSocket(ends[0]);
  const WorkerSocket other(ends[1]);
  void* const stack = mmap(nullptr, kChildStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stack == MAP_FAILED) return Refused("mmap", errno);
  std::string path = command.empty() ? "/proc/self/exe" : command;
  std::string argument = kWorkerArgument;
  Child child{.path = path.c_str(),
              .arguments = {path.data(), argument.data(), nullptr},
              .socket = ends[1]};
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &child.mask);
  // No signal at its end, so the program's own waits do not see it. The call returns when the child
  // has become another program, or has failed.
  const int process = clone(&RunChild, static_cast<char*>(stack) + kChildStackBytes,
                            CLONE_VM | CLONE_VFORK, &child);
  const int error = process < 0 ? errno : child.error;
  pthread_sigmask(SIG_SETMASK, &child.mask, nullptr);
  munmap(stack, kChildStackBytes);
  worker.process_id_ = process;
  if (error != 0) {
    worker.End(0);
    return Refused(path.c_str(), error);
  }
  // Refused where the system has no such restriction.
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(process), 0, 0, 0);
  return worker;
}

void WorkerProcess::End(std::int64_t timeout_ns) {
  socket_ = WorkerSocket();
  if (process_id_ < 0) return;
  const auto process = static_cast<pid_t>(std::exchange(process_id_, -1));
  const SystemClock clock;
  for (const std::int64_t end_ns = clock.MonotonicNs() + timeout_ns;
       clock.MonotonicNs() < end_ns;) {
    if (waitpid(process, nullptr, __WALL | WNOHANG) != 0) return;
    const timespec pause{.tv_sec = 0, .tv_nsec = kPauseNs};
    nanosleep(&pause, nullptr);
  }
  if (waitpid(process, nullptr, __WALL | WNOHANG) != 0) return;
  kill(process, SIGKILL);
  while (waitpid(process, nullptr, __WALL) < 0 && errno == EINTR) {
  }
}

}  // namespace strobe::internal
