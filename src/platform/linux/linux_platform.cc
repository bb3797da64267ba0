#include "strobe/platform/linux/linux_platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../own_threads.h"
#include "absl/strings/str_cat.h"
#include "files/image_files.h"
#include "memory/process_memory.h"
#include "scheduling.h"
#include "signals/forks.h"
#include "signals/let_through.h"
#include "signals/signal_handler.h"
#include "stack_bounds.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/settings/messages.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/own_files.h"
#include "strobe/platform/machine.h"
#include "task_files.h"

// The name in the manual. glibc's headers have it since 2.37 only.
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace strobe {
namespace {

// The kernel's encoding of a thread's CPU clock (linux/posix-timers.h): ~tid << 3, with bits for
// "of one thread" and "scheduler's clock".
clockid_t ThreadCpuClock(std::uint64_t thread_id) {
  constexpr unsigned kPerThread = 4;
  constexpr unsigned kScheduler = 2;
  return static_cast<clockid_t>(~static_cast<unsigned>(thread_id) << 3 | kPerThread | kScheduler);
}

std::int64_t ReadClockNs(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

timespec ToTimespec(std::int64_t time_ns) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  return {.tv_sec = time_ns / kNsPerSecond, .tv_nsec = time_ns % kNsPerSecond};
}

// The kernel looks at timers on threads' CPU clocks on its tick alone.
std::int64_t TickNs() {
  timespec tick{};
  clock_getres(CLOCK_MONOTONIC_COARSE, &tick);
  return static_cast<std::int64_t>(tick.tv_sec) * 1'000'000'000 + tick.tv_nsec;
}

// The calling thread's id and stack, cached: one system call for each thread.
struct CachedThread {
  ThreadInfo info;
  std::uint64_t fork_count = 0;  // ForkCount() then: in a fork's child the thread has another id
};
constinit thread_local CachedThread cached_thread;

// The stack of an own thread. It does not depend on the program's default, and is committed page by
// page. The demangler needs most: up to 350 KiB for the longest names that it accepts. The guard is
// larger than any frame.
constexpr std::size_t kOwnStackBytes = 1024 * 1024;
constexpr std::size_t kOwnGuardBytes = 64 * 1024;
constexpr const char* kOwnTasks = "/proc/self/task";
// A pipe or a terminal at that path must not block the program.
constexpr int kMessageFileFlags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NONBLOCK;

// Gives an own thread the normal policy if the calling thread has a real-time policy. Otherwise
// sets nothing, because a sandbox may forbid it.
void SetPolicy(pthread_attr_t& attributes) {
  const int policy = sched_getscheduler(0);
  if (policy != SCHED_FIFO && policy != SCHED_RR) return;
  const sched_param none{};
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, SCHED_OTHER);
  pthread_attr_setschedparam(&attributes, &none);
}

// Returns 0 or an error. If the system refuses these attributes, tries the program's defaults.
int CreateThread(pthread_t& handle, void* (*run)(void*), void* argument) {
  const internal::OwnThreadBegin begin;
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) == 0) {
    // The stack also holds the program's static thread-local storage, which may be large. So it is
    // never smaller than the stacks of the program's threads.
    std::size_t program_bytes = 0;
    pthread_attr_getstacksize(&attributes, &program_bytes);
    pthread_attr_setstacksize(&attributes, std::max(program_bytes, kOwnStackBytes));
    pthread_attr_setguardsize(&attributes, kOwnGuardBytes);
    SetPolicy(attributes);
    int error = pthread_create(&handle, &attributes, run, argument);
    if (error != 0) {  // the system may have refused the policy
      pthread_attr_setinheritsched(&attributes, PTHREAD_INHERIT_SCHED);
      error = pthread_create(&handle, &attributes, run, argument);
    }
    pthread_attr_destroy(&attributes);
    if (error == 0) return 0;
  }
  return pthread_create(&handle, nullptr, run, argument);
}

}  // namespace

absl::Status LinuxPlatform::Available() { return absl::OkStatus(); }

ThreadInfo LinuxPlatform::CurrentThread() {
  if (const std::uint64_t forks = ForkCount(); cached_thread.fork_count != forks) {
    cached_thread.info = {.id = static_cast<std::uint64_t>(syscall(SYS_gettid)),
                          .stack = internal::CurrentStackBounds()};
    cached_thread.fork_count = forks;
  }
  return cached_thread.info;
}

std::uint64_t LinuxPlatform::CurrentThreadId() {
  return cached_thread.fork_count == ForkCount() ? cached_thread.info.id
                                                 : static_cast<std::uint64_t>(syscall(SYS_gettid));
}
std::uint64_t LinuxPlatform::ProcessId() { return static_cast<std::uint64_t>(getpid()); }
std::string LinuxPlatform::ProgramName() {
  if (!HasMoreRights()) return program_invocation_short_name;
  // The user who starts a program chooses its name. If the program has more rights than that user,
  // only its file counts.
  const std::string path = internal::ProgramPath();
  return path.substr(path.find_last_of('/') + 1);
}
std::int64_t LinuxPlatform::ProcessMemoryBytes() {
  return internal::ReadResidentBytes(ProcessId());
}
LabelSet LinuxPlatform::MachineTags() { return internal::ReadMachine(ProcessId()); }
std::optional<std::string> LinuxPlatform::EnvironmentVariable(const char* name) {
  // Nothing for a program that has more rights than its user: the user's environment must not
  // choose where the program writes.
  if (internal::IsIgnoredVariable(name)) return std::nullopt;
  const char* const value = secure_getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}
std::vector<std::string> LinuxPlatform::EnvironmentNames(std::string_view prefix) {
  std::vector<std::string> names;
  if (HasMoreRights() || internal::IsIgnoredVariable(prefix)) return names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with(prefix)) names.emplace_back(text.substr(0, text.find('=')));
  }
  return names;
}

std::int64_t LinuxPlatform::ThreadCpuTimeNs(std::uint64_t thread_id) {
  return ReadClockNs(ThreadCpuClock(thread_id));
}
std::int64_t LinuxPlatform::ProcessCpuTimeNs() { return ReadClockNs(CLOCK_PROCESS_CPUTIME_ID); }
std::vector<ProgramThread> LinuxPlatform::ProgramThreads() {
  std::vector<ProgramThread> threads;
  for (const std::uint64_t id : internal::ThreadsIn(kOwnTasks)) {
    const std::int64_t cpu_ns = ThreadCpuTimeNs(id);
    if (cpu_ns >= 0 && !internal::IsOwnThread(id, ForkCount()))
      threads.push_back({.id = id, .cpu_ns = cpu_ns});
  }
  return threads;
}
std::string LinuxPlatform::ThreadName(std::uint64_t thread_id) {
  return internal::ThreadNameIn(kOwnTasks, thread_id);
}
std::int64_t LinuxPlatform::OwnCpuTimeNs() {
  return internal::OwnThreadsCpuTimeNs(ForkCount(), &ThreadCpuTimeNs);
}

int LinuxPlatform::DefaultSignal() { return internal::ChooseSignal(); }
absl::Status LinuxPlatform::InstallHandler(int signal) {
  return internal::InstallSignalHandler(signal);
}
HandlerState LinuxPlatform::HandlerStateOf(int signal) {
  return internal::SignalHandlerState(signal);
}

std::uint64_t LinuxPlatform::BlockedSignals(std::uint64_t thread_id) {
  if (thread_id == CurrentThreadId()) {
    std::uint64_t mask = 0;  // as the kernel has it
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof(mask));
    return mask;
  }
  return internal::BlockedSignalsIn(absl::StrCat("/proc/self/task/", thread_id));
}

void LinuxPlatform::SetSignalBlocked(int signal, bool is_blocked) {
  if (is_blocked) {
    internal::CeaseToLetThrough(signal);
  } else {
    internal::LetThrough(signal);
  }
}

bool LinuxPlatform::StartTimer(Timer& timer, std::uint64_t thread_id, std::uint64_t payload,
                               std::int64_t first_ns, std::int64_t period_ns, int signal) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in a pointer's place
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(payload);
  event.sigev_notify_thread_id = static_cast<pid_t>(thread_id);
  // The system calls themselves: the C library would wrap the id.
  int id = -1;
  if (syscall(SYS_timer_create, ThreadCpuClock(thread_id), &event, &id) != 0) return false;
  // An expiry is seen on the first tick after it. So it is set a tick sooner, and every tick in the
  // thread's life sees one with the same probability, the first one, too.
  const std::int64_t tick_ns = TickNs();
  const std::int64_t sooner_ns = period_ns > tick_ns ? tick_ns : 0;
  const itimerspec times{.it_interval = ToTimespec(period_ns),
                         .it_value = ToTimespec(std::max<std::int64_t>(first_ns - sooner_ns, 1))};
  if (syscall(SYS_timer_settime, id, 0, &times, nullptr) != 0) {
    syscall(SYS_timer_delete, id);
    return false;
  }
  timer.id = id;
  return true;
}

void LinuxPlatform::StopTimer(Timer& timer) {
  if (timer.id >= 0) syscall(SYS_timer_delete, timer.id);
  timer.id = -1;
}

bool LinuxPlatform::Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                              bool was_running) {
  return internal::SendRequest(ProcessId(), thread_id, payload, signal, was_running);
}

std::size_t LinuxPlatform::ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes) {
  // The kernel copies, and returns an error if nothing is mapped.
  std::size_t done = 0;
  for (std::size_t got = 1; got != 0 && done < bytes.size(); done += got) {
    got =
        internal::ReadPages<internal::kPagesPerRead>(getpid(), address + done, bytes.subspan(done));
  }
  if (done == bytes.size()) return done;
  // The call fails for code that may be executed but not read, and always in a sandbox that forbids
  // it. The file comes second, because a process that has given up rights, or has no file
  // descriptor left, cannot open it. It is opened each time: a fork's child must not read its
  // parent.
  const internal::Descriptor file(open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  while (done < bytes.size()) {
    const ssize_t got = pread(file.get(), bytes.data() + done, bytes.size() - done,
                              static_cast<off_t>(address + done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

// For the handler: two vectors take little of the interrupted thread's stack.
STROBE_SIGNAL_SAFE std::size_t LinuxPlatform::ReadStack(std::uint64_t address,
                                                        std::span<std::uint8_t> bytes) noexcept {
  return internal::ReadPages<2>(getpid(), address,
                                bytes);  // not cached: a fork's child has another
}

LinuxPlatform::OwnThread::OwnThread(OwnThread&& other) noexcept
    : handle_(other.handle_),
      is_running_(std::exchange(other.is_running_, false)),
      error_(other.error_) {}
LinuxPlatform::OwnThread& LinuxPlatform::OwnThread::operator=(OwnThread&& other) noexcept {
  handle_ = other.handle_;
  is_running_ = std::exchange(other.is_running_, false);
  error_ = other.error_;
  return *this;
}
void LinuxPlatform::OwnThread::Join() {
  if (std::exchange(is_running_, false)) pthread_join(static_cast<pthread_t>(handle_), nullptr);
}
void LinuxPlatform::OwnThread::Detach() {
  if (std::exchange(is_running_, false)) pthread_detach(static_cast<pthread_t>(handle_));
}

LinuxPlatform::OwnThread LinuxPlatform::RunOnOwnThread(const char* name,
                                                       std::function<void()> body) {
  struct Start {
    std::string name;
    std::function<void()> body;
    std::shared_ptr<internal::ProgramFiles> program_files;
  };
  auto start =
      std::make_unique<Start>(Start{name, std::move(body), internal::FilesOfThread::Program()});
  // The new thread inherits this mask, so it blocks every signal from its first instruction.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  OwnThread thread;
  pthread_t handle{};
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<Start> own(static_cast<Start*>(argument));
    if (!own->name.empty()) pthread_setname_np(pthread_self(), own->name.substr(0, 15).c_str());
    const internal::OwnThreadMark mark(CurrentThreadId(), ForkCount(), &ThreadCpuTimeNs);
    static_cast<void>(internal::TakeCpusOfProcess());
    const internal::FilesOfThread files(std::move(own->program_files));
    own->body();
    return nullptr;
  };
  thread.error_ = CreateThread(handle, run, start.get());
  if (thread.error_ == 0) {
    static_cast<void>(start.release());
    thread.handle_ = static_cast<std::uint64_t>(handle);
    thread.is_running_ = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

std::uint64_t LinuxPlatform::ForkCount() { return internal::ForkCount(); }
void LinuxPlatform::FollowForks(void (*before)(), void (*in_child)()) {
  internal::FollowForks(before, in_child);
}
bool LinuxPlatform::AtExit(void (*function)()) { return std::atexit(function) == 0; }

void LinuxPlatform::WriteLine(const std::string& text) {
  using Kind = internal::MessageTarget::Kind;
  const MessageSink sink = internal::CurrentMessageSink();
  const internal::MessageTarget& target = internal::CurrentMessageTarget(&EnvironmentVariable);
  internal::WithProgramFiles([&] {
    if (sink != nullptr) {
      sink(text);
    } else if (target.kind == Kind::kSystemLog) {
      syslog(LOG_USER | LOG_WARNING, "%s", text.c_str());
    } else if (target.kind != Kind::kNone) {
      const bool is_file = target.kind == Kind::kFile;
      const int file = is_file ? open(target.path.c_str(), kMessageFileFlags, 0644) : STDERR_FILENO;
      const std::string line = text + "\n";
      // One write, so that lines of several threads do not mix. If there is no such file, the line
      // is lost.
      [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
      if (is_file && file >= 0) close(file);
    }
  });
}

void LinuxPlatform::WithOwnFiles(const std::function<void()>& body) {
  internal::WithOwnFiles(body);
}

LinuxPlatform::Mapping LinuxPlatform::MapMemory(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return {};
  // Little of this memory is ever touched. A huge page for each first touch would take memory from
  // the program.
  madvise(memory, bytes, MADV_NOHUGEPAGE);
  // Nor is it worth its place in a core.
  madvise(memory, bytes, MADV_DONTDUMP);
  return {.bytes = {static_cast<std::byte*>(memory), bytes}};
}

void LinuxPlatform::PutIntoCores(std::span<std::byte> memory) {
  internal::AdvisePages(memory.data(), memory.size(), MADV_DODUMP);
}

void LinuxPlatform::DiscardMemory(void* memory, std::uint64_t bytes) {
  internal::AdvisePages(memory, bytes, MADV_DONTNEED);
}

void LinuxPlatform::UnmapMemory(Mapping mapping) {
  munmap(mapping.bytes.data(), mapping.bytes.size());
}

}  // namespace strobe
