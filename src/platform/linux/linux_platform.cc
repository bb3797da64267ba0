#include "strobe/platform/linux/linux_platform.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "loader_mutex.h"
#include "signal_handler.h"
#include "stack_bounds.h"
#include "strobe/base/signal_safe.h"
#include "strobe/platform/capture_target.h"

namespace strobe {
namespace {

// The kernel's encoding of a thread's CPU clock (linux/posix-timers.h): ~tid << 3, with bits for "of one thread" and "scheduler's clock".
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

// What a thread has learnt of itself: the system is asked once a thread.
struct CachedThread {
  ThreadInfo info;
  bool is_known = false;
};
constinit thread_local CachedThread cached_thread;

// Fork. The listeners' list is intrusive in nothing and small: one entry a Profiler.
struct ForkState {
  std::mutex mutex;
  std::vector<ForkListener*> listeners;
  bool is_hooked = false;
  sigset_t mask_before;  // of the forking thread
};
ForkState& GlobalForkState() {
  static auto* const state = new ForkState;  // never destroyed: a fork may come while the program ends
  return *state;
}

// Kernels before 4.19 begin a fork anew when a signal comes meanwhile, so a fork that takes longer than a period would never end there:
// our signals wait. Their expiries are not lost, they add up as overruns.
void BeforeFork() {
  GlobalForkState().mutex.lock();
  internal::LoaderMutex().lock();
  internal::InstallMutex().lock();
  const sigset_t ours = internal::InstalledSignals();
  pthread_sigmask(SIG_BLOCK, &ours, &GlobalForkState().mask_before);
}
void AfterForkInParent() {
  const sigset_t before = GlobalForkState().mask_before;
  internal::InstallMutex().unlock();
  internal::LoaderMutex().unlock();
  GlobalForkState().mutex.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}
void AfterForkInChild() {
  internal::InstallMutex().unlock();
  internal::LoaderMutex().unlock();
  internal::DoubtLoader();
  cached_thread.is_known = false;
  // The parent's registrations mean nothing here, and its threads do not exist.
  internal::ThreadLinks() = nullptr;
  for (std::size_t arena = 0; arena < internal::kMaxArenas; ++arena) {
    internal::CaptureEntryOf(arena).function.store(nullptr, std::memory_order_release);
  }
  for (ForkListener* listener : GlobalForkState().listeners) listener->OnForkChild();
  const sigset_t before = GlobalForkState().mask_before;
  GlobalForkState().mutex.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Of a collector's read in one call.
constexpr std::size_t kPagesPerRead = 16;

// Copies memory by vectors that lie each in one page, for what is copied where a page is missing is promised between two vectors only;
// kPages of them in one call. Returns how many bytes could be read, from the front.
template <std::size_t kPages>
STROBE_SIGNAL_SAFE inline std::size_t ReadPages(std::uint64_t address, std::span<std::byte> bytes) noexcept {
  constexpr std::size_t kPageBytes = 4096;
  const pid_t process = getpid();  // at this moment: in a fork's child it is the child's
  std::size_t done = 0;
  while (done < bytes.size()) {
    iovec pages[kPages];
    std::size_t count = 0;
    std::size_t wanted = 0;
    for (; count < kPages && done + wanted < bytes.size(); ++count) {
      const std::uint64_t at = address + done + wanted;
      const std::size_t in_page = std::min<std::size_t>(kPageBytes - at % kPageBytes, bytes.size() - done - wanted);
      pages[count] = {reinterpret_cast<void*>(at), in_page};  // NOLINT(performance-no-int-to-ptr): only the kernel's
      wanted += in_page;
    }
    const iovec copy{.iov_base = bytes.data() + done, .iov_len = wanted};
    const ssize_t got = process_vm_readv(process, &copy, 1, pages, count, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
    if (got != static_cast<ssize_t>(wanted)) break;
  }
  return done;
}

}  // namespace

std::mutex& internal::LoaderMutex() {
  static auto* const mutex = new std::mutex;
  return *mutex;
}

absl::Status LinuxPlatform::Available() { return absl::OkStatus(); }

ThreadInfo LinuxPlatform::CurrentThread() {
  if (!cached_thread.is_known) {
    cached_thread.info = {.id = static_cast<std::uint64_t>(syscall(SYS_gettid)), .stack = internal::CurrentStackBounds()};
    cached_thread.is_known = true;
  }
  return cached_thread.info;
}

std::uint64_t LinuxPlatform::CurrentThreadId() {
  return cached_thread.is_known ? cached_thread.info.id : static_cast<std::uint64_t>(syscall(SYS_gettid));
}
std::uint64_t LinuxPlatform::ProcessId() { return static_cast<std::uint64_t>(getpid()); }
std::string LinuxPlatform::ProgramName() { return program_invocation_short_name; }
std::optional<std::string> LinuxPlatform::EnvironmentVariable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::int64_t LinuxPlatform::ThreadCpuTimeNs(std::uint64_t thread_id) { return ReadClockNs(ThreadCpuClock(thread_id)); }
std::int64_t LinuxPlatform::ProcessCpuTimeNs() { return ReadClockNs(CLOCK_PROCESS_CPUTIME_ID); }

int LinuxPlatform::DefaultSignal() { return SIGURG; }
absl::Status LinuxPlatform::InstallHandler(int signal) { return internal::InstallSignalHandler(signal); }
HandlerState LinuxPlatform::HandlerStateOf(int signal) { return internal::SignalHandlerState(signal); }

bool LinuxPlatform::StartTimer(Timer& timer, std::uint64_t thread_id, std::uint64_t payload, std::int64_t first_ns, std::int64_t period_ns,
                               int signal) {
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = reinterpret_cast<void*>(payload);  // NOLINT(performance-no-int-to-ptr): a number in a pointer's place
  event._sigev_un._tid = static_cast<pid_t>(thread_id);
  // The system calls themselves: the C library wraps an id that nobody here needs wrapped.
  int id = -1;
  if (syscall(SYS_timer_create, ThreadCpuClock(thread_id), &event, &id) != 0) return false;
  const itimerspec times{.it_interval = ToTimespec(period_ns), .it_value = ToTimespec(first_ns)};
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

bool LinuxPlatform::Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal) {
  siginfo_t info{};
  info.si_signo = signal;
  // In a timer's shape, because an exec throws a thread's pending timer signals away and no others: the new image has no handler, and may
  // be killed by what is left over. No timer has this overrun; it makes the signal stand for no expiry.
  info.si_code = SI_TIMER;
  info.si_overrun = -1;
  info.si_value.sival_ptr = reinterpret_cast<void*>(payload);  // NOLINT(performance-no-int-to-ptr): as above
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), static_cast<pid_t>(thread_id), signal, &info) == 0;
}

std::size_t LinuxPlatform::ReadMemory(std::uint64_t address, std::span<std::uint8_t> bytes) {
  // Through the kernel, which answers with an error where nothing is mapped.
  std::size_t done = 0;
  for (std::size_t got = 1; got != 0 && done < bytes.size(); done += got) {
    got = ReadPages<kPagesPerRead>(address + done, std::as_writable_bytes(bytes.subspan(done)));
  }
  if (done == bytes.size()) return done;
  // Code that may be executed and not read, or all where a sandbox forbids the call. The file is no first choice: a process that has given
  // up rights, or has no file descriptor left, cannot open it. Opened each time: a fork's child must not read its parent.
  const int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  if (file < 0) return done;
  while (done < bytes.size()) {
    const ssize_t got = pread(file, bytes.data() + done, bytes.size() - done, static_cast<off_t>(address + done));
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  close(file);
  return done;
}

// A handler's: no more of the interrupted thread's stack than two vectors take.
STROBE_SIGNAL_SAFE std::size_t LinuxPlatform::ReadStack(std::uint64_t address, std::span<std::byte> bytes) noexcept {
  return ReadPages<2>(address, bytes);
}

LinuxPlatform::OwnThread::OwnThread(OwnThread&& other) noexcept
    : handle_(other.handle_), is_running_(std::exchange(other.is_running_, false)) {}
LinuxPlatform::OwnThread& LinuxPlatform::OwnThread::operator=(OwnThread&& other) noexcept {
  handle_ = other.handle_;
  is_running_ = std::exchange(other.is_running_, false);
  return *this;
}
void LinuxPlatform::OwnThread::Join() {
  if (std::exchange(is_running_, false)) pthread_join(static_cast<pthread_t>(handle_), nullptr);
}
void LinuxPlatform::OwnThread::Detach() {
  if (std::exchange(is_running_, false)) pthread_detach(static_cast<pthread_t>(handle_));
}

LinuxPlatform::OwnThread LinuxPlatform::RunOnOwnThread(const char* name, std::function<void()> body) {
  struct Start {
    std::string name;
    std::function<void()> body;
  };
  auto start = std::make_unique<Start>(Start{name, std::move(body)});
  // The new thread inherits the mask, so it has blocked every signal before its first instruction.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  OwnThread thread;
  pthread_t handle{};
  const auto run = [](void* argument) -> void* {
    const std::unique_ptr<Start> own(static_cast<Start*>(argument));
    pthread_setname_np(pthread_self(), own->name.substr(0, 15).c_str());
    own->body();
    return nullptr;
  };
  if (pthread_create(&handle, nullptr, run, start.get()) == 0) {
    static_cast<void>(start.release());
    thread.handle_ = static_cast<std::uint64_t>(handle);
    thread.is_running_ = true;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

void LinuxPlatform::AddForkListener(ForkListener* listener) {
  ForkState& state = GlobalForkState();
  const std::lock_guard lock(state.mutex);
  state.listeners.push_back(listener);
  if (!std::exchange(state.is_hooked, true)) pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
}

void LinuxPlatform::RemoveForkListener(ForkListener* listener) {
  ForkState& state = GlobalForkState();
  const std::lock_guard lock(state.mutex);
  std::erase(state.listeners, listener);
}

void LinuxPlatform::WriteLine(const std::string& text) {
  const std::string line = text + "\n";
  // One write, so that lines of several threads do not mix. Where standard error is closed there is nobody to tell.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

void* LinuxPlatform::MapMemory(std::uint64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

void LinuxPlatform::UnmapMemory(void* memory, std::uint64_t bytes) { munmap(memory, bytes); }

}  // namespace strobe
