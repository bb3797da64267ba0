#include "process_session.h"

#include <pthread.h>
#include <semaphore.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "../platform/linux/held_by_thread.h"
#include "preload_options.h"
#include "preload_profiler.h"
#include "signal_masks.h"
#include "strobe/base/memory_guard.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/platform/native.h"
#include "strobe/platform/refused_thread.h"

namespace strobe::internal {
namespace {

// How long a call of _exit waits for the last export.
constexpr int kMaxExitWaitS = 2;
// A forked child that lives longer than this has a session. Most others call exec.
constexpr long kForkedStartNs = 10'000'000;
constexpr long kSecondNs = 1'000'000'000;
// A wait for the end of the recording: the clock of semaphores may be set meanwhile.
constexpr std::int64_t kLongestWaitNs = 1'000'000'000;

// A process that a signal ends leaves what it has exported. So a recording has the first exports
// soon, and the others by the exporter's period.
constexpr std::array<std::int64_t, 3> kEarlyExportsNs{200'000'000, 1'000'000'000, 2'500'000'000};

// What threads of a profiler call themselves. The program may have one: its threads are not the
// program's, and block the signal.
constexpr std::string_view kProfilersThreads = "strobe-";

constinit std::atomic<bool> has_begun{false};
constinit std::atomic<PreloadProfiler*> profiler{nullptr};
// A worker exports what is left when the process has ended, however that was.
constinit bool has_worker = false;
// The process whose session runs; 0 if there is none.
constinit std::atomic<pid_t> session_process{0};
constinit HeldByThread<Registration> registrations;
// Between EndBeforeExit and the thread that ends the session.
sem_t exit_asked;
sem_t exit_done;
constinit std::atomic<bool> has_exit_thread{false};
constinit std::atomic<bool> begins_anew{false};  // what the thread is asked for
// An export costs as much. What this process has used when its session had begun is the session's.
constexpr std::int64_t kWorthAnExportNs = 2'000'000;
constinit std::atomic<std::int64_t> used_at_begin_ns{0};

std::int64_t UsedNs() {
  timespec used{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return std::int64_t{kSecondNs} * used.tv_sec + used.tv_nsec;
}

void WriteWarning(const std::string& what) { NativePlatform::WriteLine("strobe: " + what); }
void WarnOfRefusal(const NativePlatform::OwnThread& thread, const char* use) {
  const absl::Status status = StatusOfThread(use, thread);
  if (!status.ok()) WriteWarning(std::string(status.message()));
}

timespec After(long time_ns) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  now.tv_sec += (now.tv_nsec + time_ns) / kSecondNs;
  now.tv_nsec = (now.tv_nsec + time_ns) % kSecondNs;
  return now;
}

// When the recording is over: see RecordingUntilNs.
std::int64_t until_ns = INT64_MAX;

// False if the semaphore was not posted by then.
bool WaitUntil(sem_t& semaphore, const timespec& time) {
  while (sem_timedwait(&semaphore, &time) != 0) {
    if (errno != EINTR) return false;
  }
  return true;
}

void Start() {
  const absl::Status status = profiler.load()->Start();
  if (status.ok()) {
    used_at_begin_ns.store(UsedNs());
    session_process.store(getpid());
  } else {
    WriteWarning("cannot profile this program: " + std::string(status.message()));
  }
}

// Waits until then, or until an exit is asked for, which true says.
bool IsExitAskedBefore(std::int64_t time_ns) {
  for (;;) {
    const std::int64_t left_ns = time_ns - SystemClock().MonotonicNs();
    if (left_ns <= 0) return false;
    if (WaitUntil(exit_asked, After(static_cast<long>(std::min(left_ns, kLongestWaitNs)))))
      return true;
  }
}

// Exports early, for a recording, and ends the session when that is over. Returns before if an exit
// is asked for, which true says.
bool AttendRecording() {
  const std::int64_t begin_ns = SystemClock().MonotonicNs();
  const bool is_recorded = NativePlatform::EnvironmentVariable(kRecordingVariable).has_value();
  for (const std::int64_t after_ns : kEarlyExportsNs) {
    if (!is_recorded || begin_ns + after_ns >= until_ns) break;
    if (IsExitAskedBefore(begin_ns + after_ns)) return true;
    static_cast<void>(profiler.load()->Flush());
  }
  if (until_ns == INT64_MAX) return false;
  if (IsExitAskedBefore(until_ns)) return true;
  static_cast<void>(profiler.load()->Stop());
  return false;
}

void AwaitAsked() {
  while (sem_wait(&exit_asked) != 0) {
  }
}

void AwaitExits() {
  for (;;) {
    if (!AttendRecording()) AwaitAsked();
    do {
      static_cast<void>(profiler.load()->Stop());
      sem_post(&exit_done);
      AwaitAsked();
    } while (!begins_anew.exchange(false));
    if (SystemClock().MonotonicNs() < until_ns) static_cast<void>(HasMemoryFor(&Start));
    sem_post(&exit_done);
  }
}

// Has the thread do what it is asked for, and waits as long as an exit does.
// No end of the thread by its cancellation comes here: neither exec nor _exit is such a point.
void AskExitThread() {
  int state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
  sem_post(&exit_asked);
  static_cast<void>(WaitUntil(exit_done, After(kMaxExitWaitS * kSecondNs)));
  pthread_setcancelstate(state, nullptr);
}

bool MayAskExitThread() {
  return !has_worker && has_exit_thread.load() && session_process.load() == getpid();
}

void RunExitThread(bool is_forked) {
  sem_init(&exit_asked, 0, 0);
  sem_init(&exit_done, 0, 0);
  auto thread = NativePlatform::RunOnOwnThread("strobe-exit", [is_forked] {
    if (is_forked && WaitUntil(exit_asked, After(kForkedStartNs))) return;
    if (SystemClock().MonotonicNs() >= until_ns) return;
    if (is_forked && !HasMemoryFor(&Start))
      WriteWarning("cannot profile this program: out of memory");
    if (!has_worker) AwaitExits();
  });
  has_exit_thread.store(thread.IsRunning());
  if (!is_forked) WarnOfRefusal(thread, "the last profile of a program that calls _exit");
  thread.Detach();
}

std::array<char, 16> ThisThreadsName() {
  std::array<char, 16> name{};
  prctl(PR_GET_NAME, name.data());
  return name;
}

// The parent's session and registrations mean nothing here. Nothing is started before the child has
// lived for a while.
void BeginForkedChild() {
  session_process.store(0);
  RegisterThisThread();
  static_cast<void>(HasMemoryFor([] { RunExitThread(true); }));
}

void EndAtQuickExit() {
  if (session_process.load() == getpid()) static_cast<void>(profiler.load()->Stop());
}

// What Start allocates and frees would leave the heap of the calling thread in pieces, and make the
// program's own allocations 4 % slower. Another thread has a heap of its own.
void StartOnOwnThread(ProfilerOptions options) {
  const auto start = [&options] {
    profiler.store(&MakePreloadProfiler(std::move(options)));
    Start();
  };
  auto thread = NativePlatform::RunOnOwnThread("strobe-start", [&start] {
    if (!HasMemoryFor(start)) WriteWarning("cannot profile this program: out of memory");
  });
  WarnOfRefusal(thread, "the profile of this program");
  thread.Join();
}

void Begin() {
  std::optional<ProfilerOptions> options = PreloadOptions();
  if (!options || !registrations.Begin()) return;
  has_worker = *options->worker.enabled;
  until_ns = RecordingUntilNs(NativePlatform::EnvironmentVariable(kRecordingUntilVariable));
  if (has_worker) {
    profiler.store(&MakePreloadProfiler(*std::move(options)));
    Start();
  } else {
    StartOnOwnThread(*std::move(options));
  }
  if (session_process.load() == 0) return;
  RegisterThisThread();
  if (!has_worker) RunExitThread(false);
  pthread_atfork(nullptr, nullptr, &BeginForkedChild);
  at_quick_exit(&EndAtQuickExit);
}

}  // namespace

void BeginProcess() noexcept {
  const int saved_errno = errno;
  if (!has_begun.exchange(true) && !HasMemoryFor(&Begin))
    WriteWarning("cannot profile this program: out of memory");
  errno = saved_errno;
}

void RegisterThisThread() noexcept {
  PreloadProfiler* const used = profiler.load();
  if (used == nullptr) return;
  const int saved_errno = errno;
  static_cast<void>(HasMemoryFor([used] {
    // In a forked child, the held registration is the parent's: it does nothing, and its end too.
    registrations.End();
    TakeMask();
    registrations.Hold(used->RegisterThread(ThisThreadsName().data()));
  }));
  errno = saved_errno;
}

void RenameThisThread() noexcept {
  if (profiler.load() == nullptr || registrations.Get() == nullptr) return;
  if (std::string_view(ThisThreadsName().data()).starts_with(kProfilersThreads)) {
    registrations.End();
  } else {
    RegisterThisThread();
  }
}

void AwaitSignals(const sigset_t& awaited) noexcept {
  if (profiler.load() == nullptr || !AwaitsProfilersSignal(awaited)) return;
  const bool is_registered = registrations.Get() != nullptr;
  registrations.End();
  BlockAwaited();
  if (is_registered) RegisterThisThread();
}

bool EndBeforeExec() noexcept {
  if (!MayAskExitThread() || UsedNs() - used_at_begin_ns.load() < kWorthAnExportNs) return false;
  const int saved_errno = errno;
  AskExitThread();
  errno = saved_errno;
  return true;
}

void BeginAfterExec() noexcept {
  const int saved_errno = errno;
  begins_anew.store(true);
  AskExitThread();
  errno = saved_errno;
}

void EndBeforeExit() noexcept {
  if (MayAskExitThread()) AskExitThread();
}

}  // namespace strobe::internal
