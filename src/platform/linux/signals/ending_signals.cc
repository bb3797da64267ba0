#include "ending_signals.h"

#include <errno.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "signal_handler.h"
#include "strobe/base/signal_safe.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/linux/linux_ending_signals.h"

namespace strobe {
namespace {

constexpr std::array kEndingSignals{SIGHUP, SIGINT, SIGTERM};

// Static, because a late signal may still use it. Take and GiveBack hold the InstallMutex.
struct Taken {
  sem_t has_come{};               // posted by the handler, and by Close
  std::atomic<int> signal{0};     // the first that has come
  std::atomic<pid_t> process{0};  // a thread of this process awaits them; 0 for none
  std::atomic<bool> is_closed{false};
  std::atomic<std::int64_t> patience_ns{0};
};
constinit Taken taken;

// Data plane, as are all functions up to HandleEnd.
STROBE_SIGNAL_SAFE void SetDefault(int signal) {
  struct sigaction action {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

// Gives the signals that still have our handler their default action.
STROBE_SIGNAL_SAFE void SetAllDefault() {
  for (const int signal : kEndingSignals) {
    struct sigaction current {};
    if (sigaction(signal, nullptr, &current) == 0 && internal::DelaysEnd(current))
      SetDefault(signal);
  }
}

STROBE_SIGNAL_SAFE void SleepUntil(std::int64_t monotonic_ns) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  const timespec time{.tv_sec = monotonic_ns / kNsPerSecond,
                      .tv_nsec = monotonic_ns % kNsPerSecond};
  // Not by the C library, whose function is a place where a thread may be cancelled.
  while (syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0 &&
         errno == EINTR) {
  }
}

STROBE_SIGNAL_SAFE void EndBy(int signal) {
  SetDefault(signal);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
}

STROBE_SIGNAL_SAFE void HandleEnd(int signal) {
  const int saved_errno = errno;
  struct sigaction current {};
  int none = 0;
  if (sigaction(signal, nullptr, &current) != 0 || !internal::DelaysEnd(current)) {
    // A handler that the program has installed since calls this one, and decides by itself.
  } else if (taken.process.load(std::memory_order_acquire) != getpid()) {
    EndBy(signal);  // in a fork's child
  } else if (taken.signal.compare_exchange_strong(none, signal)) {
    const std::int64_t begin_ns = SystemClock().MonotonicNs();
    const std::int64_t patience_ns = taken.patience_ns.load(std::memory_order_relaxed);
    sem_post(&taken.has_come);
    SleepUntil(begin_ns + std::min(LinuxEndingSignals::kSameRequestNs, patience_ns));
    SetAllDefault();  // from here on the next signal ends the process at once
    SleepUntil(begin_ns + patience_ns);
    EndBy(signal);
  }
  errno = saved_errno;
}

// SA_NODEFER, because the handler keeps its thread, and another signal must end that.
const struct sigaction& OurAction() {
  static const struct sigaction action = [] {
    struct sigaction ours {};
    ours.sa_handler = &HandleEnd;
    ours.sa_flags = SA_RESTART | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&ours.sa_mask);
    return ours;
  }();
  return action;
}

// Takes the signals whose action is the default, or ours already, as in a fork's child. False if
// there are none.
bool InstallHandlers() {
  bool has_one = false;
  for (const int signal : kEndingSignals) {
    struct sigaction current {};
    if (sigaction(signal, nullptr, &current) != 0) continue;
    const bool is_default = (current.sa_flags & SA_SIGINFO) == 0 && current.sa_handler == SIG_DFL;
    if (is_default || internal::DelaysEnd(current))
      has_one |= sigaction(signal, &OurAction(), nullptr) == 0;
  }
  return has_one;
}

}  // namespace

STROBE_SIGNAL_SAFE bool internal::DelaysEnd(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &HandleEnd;
}

const struct sigaction* internal::DelayedEnd(int signal) {
  const bool is_one = std::ranges::find(kEndingSignals, signal) != kEndingSignals.end();
  return is_one && taken.process.load(std::memory_order_acquire) == getpid() ? &OurAction()
                                                                             : nullptr;
}

bool LinuxEndingSignals::Take(std::int64_t patience_ns) {
  const std::lock_guard lock(internal::InstallMutex());
  if (!has_taken_) {
    if (taken.process.load(std::memory_order_relaxed) == getpid()) return false;
    sem_init(&taken.has_come, /*pshared=*/0, 0);
    // A loader that binds a function at its first call must not do so in the handler.
    sem_post(&taken.has_come);
    sem_trywait(&taken.has_come);
    SleepUntil(0);
    taken.signal.store(0, std::memory_order_relaxed);
    taken.is_closed.store(false, std::memory_order_relaxed);
  }
  taken.patience_ns.store(patience_ns, std::memory_order_relaxed);
  taken.process.store(getpid(), std::memory_order_release);  // first: the handler asks for it
  has_taken_ = InstallHandlers() || has_taken_;
  if (!has_taken_) taken.process.store(0, std::memory_order_release);
  return has_taken_;
}

// A signal goes before Close: the thread that has got it waits in the handler.
bool LinuxEndingSignals::Await() const {
  while (taken.signal.load(std::memory_order_acquire) == 0) {
    if (taken.is_closed.load(std::memory_order_acquire)) return false;
    sem_wait(&taken.has_come);  // a debugger may end the wait
  }
  return true;
}

void LinuxEndingSignals::EndProcess() const { EndBy(taken.signal.load(std::memory_order_acquire)); }

void LinuxEndingSignals::Close() const {
  if (!has_taken_) return;
  taken.is_closed.store(true, std::memory_order_release);
  sem_post(&taken.has_come);
}

void LinuxEndingSignals::GiveBack() {
  if (!has_taken_) return;
  const std::lock_guard lock(internal::InstallMutex());
  SetAllDefault();
  taken.process.store(0, std::memory_order_release);
  has_taken_ = false;
  // One that has come since the last Await.
  if (const int signal = taken.signal.load(std::memory_order_acquire); signal != 0) EndBy(signal);
}

}  // namespace strobe
