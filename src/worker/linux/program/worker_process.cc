#include "strobe/worker/program/worker_process.h"

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
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "../../../platform/linux/task_files.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/worker/shared/listening_socket.h"

extern char** environ;

namespace strobe::internal {
namespace {

constexpr std::size_t kChildStackBytes = 64 * 1024;
constexpr std::int64_t kPauseNs = 1'000'000;

// What the children need, made before they begin: they share the program's memory, so they call
// nothing but the system, not even through the C library, whose functions a sanitizer replaces.
struct Child {
  const char* path;
  std::array<char*, 3> arguments;
  char* const* environment;
  int socket;
  char* stack_of_worker;
  sigset_t mask{};  // of the calling thread
  int worker = -1;  // its process id
  int error = 0;
};

// The kernel's struct sigaction.
struct KernelAction {
  void (*handler)(int) = SIG_DFL;
  unsigned long flags = 0;
  void (*restorer)() = nullptr;
  std::uint64_t mask = 0;
};
constexpr std::size_t kMaskBytes = sizeof(KernelAction::mask);

// A child whose end raises no signal and that only a wait with __WALL returns, until it becomes
// another program. The call returns when it has, or has ended.
int BeginChild(int (*run)(void*), char* stack, Child& child) {
  return clone(run, stack, CLONE_VM | CLONE_VFORK, &child);
}

// The handlers of the program would run in its memory.
void TakeDefaultActions() {
  for (int signal = 1; signal < NSIG; ++signal) {
    KernelAction action;
    const KernelAction none;
    if (syscall(SYS_rt_sigaction, signal, nullptr, &action, kMaskBytes) == 0 &&
        action.handler != SIG_IGN)
      syscall(SYS_rt_sigaction, signal, &none, nullptr, kMaskBytes);
  }
}

bool Put(long descriptor, int place) {
  return descriptor == place || syscall(SYS_dup3, descriptor, place, 0) >= 0;
}

// Lets only the socket and standard error through: another open end of a pipe would keep it open.
// The child's numbers are its own, so that what is in the way of the socket goes. A limit of few
// files leaves no room for more than this.
bool KeepDescriptors(int socket) {
  const bool is_kept = socket == kWorkerSocket ? syscall(SYS_fcntl, socket, F_SETFD, 0) == 0
                                               : Put(socket, kWorkerSocket);
#ifdef SYS_close_range
  syscall(SYS_close_range, kWorkerSocket + 1, ~0U, 0);
#endif
  // A program may have closed its standard input.
  const long nothing = syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  if (!is_kept || nothing < 0 || !Put(nothing, STDIN_FILENO) || !Put(nothing, STDOUT_FILENO))
    return false;
  if (nothing > kWorkerSocket) syscall(SYS_close, nothing);
  return true;
}

int RunWorker(void* argument) {
  auto& child = *static_cast<Child*>(argument);
  TakeDefaultActions();
  syscall(SYS_setsid);
  if (KeepDescriptors(child.socket)) {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &child.mask, nullptr, kMaskBytes);
    syscall(SYS_execve, child.path, child.arguments.data(), child.environment);
  }
  child.error = errno;
  syscall(SYS_exit, 127);
  return 0;
}

// The program's environment, but for what the program ignores, and what would make the worker
// profile itself. A process that was
// to be a worker and is none, because its main does not know of it, is a program as any other: the
// kill switch keeps each profiler in it from beginning one, which would begin the next.
std::vector<char*> EnvironmentOfWorker(std::string& kill_switch) {
  std::vector<char*> environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view variable = *entry;
    if (!variable.starts_with("LD_PRELOAD=") && !variable.starts_with(kRecordPrefix) &&
        !variable.starts_with("STROBE_ENABLED=") && !IsIgnoredVariable(variable))
      environment.push_back(*entry);
  }
  environment.push_back(kill_switch.data());
  environment.push_back(nullptr);
  return environment;
}

// The worker's parent, which ends at once: so the worker is no child of the program.
int RunParent(void* argument) {
  auto& child = *static_cast<Child*>(argument);
  child.worker = BeginChild(&RunWorker, child.stack_of_worker, child);
  if (child.worker < 0) child.error = errno;
  syscall(SYS_exit, 0);
  return 0;
}

// Lets the worker read the program's memory. Refused where the system has no such restriction.
void LetRead(std::int64_t worker) {
  prctl(PR_SET_PTRACER, static_cast<unsigned long>(worker), 0, 0, 0);
}

// What all threads of the process have used; 0 if it is not known.
std::int64_t CpuTimeOf(std::int64_t process) {
  clockid_t clock{};
  timespec time{};
  if (process <= 0 || clock_getcpuclockid(static_cast<pid_t>(process), &clock) != 0 ||
      clock_gettime(clock, &time) != 0)
    return 0;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

absl::Status Refused(const char* what, int error) {
  return absl::UnavailableError(
      absl::StrCat("no worker process: ", what, ": ", std::strerror(error)));
}

}  // namespace

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept
    : thread_(std::move(other.thread_)),
      process_id_(std::exchange(other.process_id_, -1)),
      socket_(std::move(other.socket_)),
      is_joined_(other.is_joined_) {}
WorkerProcess& WorkerProcess::operator=(WorkerProcess&& other) noexcept {
  if (this != &other) {
    End(0);
    thread_ = std::move(other.thread_);
    process_id_ = std::exchange(other.process_id_, -1);
    socket_ = std::move(other.socket_);
    is_joined_ = other.is_joined_;
  }
  return *this;
}
WorkerProcess::~WorkerProcess() { End(0); }

absl::StatusOr<WorkerProcess> WorkerProcess::BeginHere(Serve serve, const SharedArea& area) {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Refused("socketpair", errno);
  WorkerProcess worker;
  worker.socket_ = WorkerSocket(ends[0]);
  auto other = std::make_shared<WorkerSocket>(ends[1]);
  WorkerSocket::Tie(worker.socket_, *other);
  worker.thread_ = LinuxPlatform::RunOnOwnThread(
      "strobe-serve", [serve = std::move(serve), other = std::move(other), area] {
        static_cast<void>(HasMemoryFor([&] { serve(*other, &area); }));
        *other = WorkerSocket();
      });
  if (worker.thread_.IsRunning()) return worker;
  return RefusedThread("what takes a worker's place", worker.thread_.error());
}

absl::StatusOr<WorkerProcess> WorkerProcess::Begin(const std::string& command) {
  if (LinuxPlatform::HasMoreRights()) {
    return absl::FailedPreconditionError(
        "no worker process: the program has more rights than whoever began it");
  }
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return Refused("socketpair", errno);
  WorkerProcess worker;
  worker.socket_ = WorkerSocket(ends[0]);
  const WorkerSocket other(ends[1]);
  void* const stacks = mmap(nullptr, 2 * kChildStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (stacks == MAP_FAILED) return Refused("mmap", errno);
  char* const parents_stack = static_cast<char*>(stacks) + kChildStackBytes;
  std::string path = command.empty() ? "/proc/self/exe" : command;
  std::string argument = kWorkerArgument;
  std::string kill_switch = "STROBE_ENABLED=0";
  const std::vector<char*> environment = EnvironmentOfWorker(kill_switch);
  Child child{.path = path.c_str(),
              .arguments = {path.data(), argument.data(), nullptr},
              .environment = environment.data(),
              .socket = other.descriptor(),
              .stack_of_worker = parents_stack + kChildStackBytes};
  // The handlers of the program would run in its memory.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &child.mask);
  const int parent = BeginChild(&RunParent, parents_stack, child);
  const int error = parent < 0 ? errno : child.error;
  while (parent > 0 && waitpid(parent, nullptr, __WALL) < 0 && errno == EINTR) {
  }
  pthread_sigmask(SIG_SETMASK, &child.mask, nullptr);
  munmap(stacks, 2 * kChildStackBytes);
  if (error != 0) return Refused(path.c_str(), error);
  worker.process_id_ = child.worker;
  LetRead(child.worker);
  return worker;
}

absl::StatusOr<WorkerProcess> WorkerProcess::Join(const std::string& path) {
  absl::StatusOr<WorkerSocket> socket = ConnectToWorker(path);
  if (!socket.ok()) return socket.status();
  WorkerProcess worker;
  worker.socket_ = *std::move(socket);
  worker.is_joined_ = true;
  LetRead(worker.socket_.PeerProcess());
  return worker;
}

absl::StatusOr<Message> WorkerProcess::AwaitOffer() const {
  if (!is_joined_) return socket_.Receive(kWelcomeTimeoutNs);
  const std::int64_t peer = socket_.PeerProcess();
  std::int64_t cpu_ns = CpuTimeOf(peer);
  for (std::int64_t waited_ns = 0;; waited_ns += kJoinTimeoutNs) {
    absl::StatusOr<Message> offer = socket_.Receive(kJoinTimeoutNs);
    if (!absl::IsDeadlineExceeded(offer.status()) || waited_ns >= kWelcomeTimeoutNs) return offer;
    const std::int64_t before_ns = std::exchange(cpu_ns, CpuTimeOf(peer));
    if (cpu_ns == before_ns && !IsAnyRunnable(absl::StrCat("/proc/", peer, "/task"))) return offer;
  }
}

// Only the worker has the other end of the socket. So a handle that was made while that was open is
// the worker's: its process id may be another process's by now.
void WorkerProcess::Kill() const {
  const auto is_held = [this] { return socket_.is_open() && !socket_.HasEnded(); };
#ifdef SYS_pidfd_open
  const int process = static_cast<int>(syscall(SYS_pidfd_open, process_id_, 0));
  if (process >= 0) {
    if (is_held()) syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0);
    close(process);
    return;
  }
  if (errno == ESRCH) return;
#endif
  // A system before Linux 5.3, a sandbox, or no descriptor left.
  if (is_held()) kill(static_cast<pid_t>(process_id_), SIGKILL);
}

void WorkerProcess::End(std::int64_t timeout_ns) {
  if (thread_.IsRunning()) {
    socket_.HangUp();
    thread_.Join();
    return;
  }
  const SystemClock clock;
  const std::int64_t end_ns = clock.MonotonicNs() + timeout_ns;
  while (process_id_ >= 0 && !socket_.HasEnded() && clock.MonotonicNs() < end_ns) {
    const timespec pause{.tv_sec = 0, .tv_nsec = kPauseNs};
    nanosleep(&pause, nullptr);
  }
  if (process_id_ >= 0) Kill();
  process_id_ = -1;
  socket_ = WorkerSocket();
}

}  // namespace strobe::internal
