#include <errno.h>
#include <semaphore.h>
#include <signal.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "forks.h"
#include "signal_handler.h"
#include "strobe/base/signal_safe.h"
#include "strobe/platform/linux/linux_signal_inbox.h"

namespace strobe {
namespace {

// Static, because a late signal may still use the semaphore. Open and the destructor hold the
// InstallMutex.
struct Inbox {
  sem_t semaphore{};
  std::atomic<bool> is_closed{false};
  std::uint64_t owner = 0;              // the ForkCount of the process that has it open; 0 for none
  struct sigaction previous_action {};  // of the signal
};
constinit std::array<Inbox, internal::kSignalLimit> inboxes{};

Inbox& InboxOf(int signal) { return inboxes[static_cast<std::size_t>(signal)]; }

// Data plane.
STROBE_SIGNAL_SAFE void PostSignal(int signal) {
  const int saved_errno = errno;
  sem_post(&InboxOf(signal).semaphore);
  errno = saved_errno;
}

bool IsOurs(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == &PostSignal;
}

absl::Status Install(int signal) {
  const auto refusal = [signal](const char* reason) {
    return absl::FailedPreconditionError(absl::StrCat("signal ", signal, reason));
  };
  const std::uint64_t process = internal::ForkCount();
  const std::lock_guard lock(internal::InstallMutex());
  Inbox& inbox = InboxOf(signal);
  if (inbox.owner == process) return refusal(" belongs to another profiler of this process");
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return refusal(" cannot be handled");
  if (!IsOurs(current)) {  // as it is in a fork's child
    const bool is_siginfo = (current.sa_flags & SA_SIGINFO) != 0;
    if (is_siginfo || (current.sa_handler != SIG_DFL && current.sa_handler != SIG_IGN))
      return refusal(" has a handler of the program");
    inbox.previous_action = current;
  }
  sem_init(&inbox.semaphore, /*pshared=*/0, 0);
  // A loader that binds a function at its first call must not do so in the handler.
  sem_post(&inbox.semaphore);
  sem_trywait(&inbox.semaphore);
  inbox.is_closed.store(false, std::memory_order_relaxed);
  struct sigaction ours {};
  ours.sa_handler = &PostSignal;
  ours.sa_flags = SA_RESTART | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  if (sigaction(signal, &ours, nullptr) != 0) return refusal(" cannot be handled");
  inbox.owner = process;
  return absl::OkStatus();
}

}  // namespace

LinuxSignalInbox::~LinuxSignalInbox() {
  if (signal_ == 0) return;
  const std::lock_guard lock(internal::InstallMutex());
  Inbox& inbox = InboxOf(signal_);
  struct sigaction current {};
  // A handler that the program has installed since stays.
  if (sigaction(signal_, nullptr, &current) == 0 && IsOurs(current))
    sigaction(signal_, &inbox.previous_action, nullptr);
  inbox.owner = 0;
}

absl::Status LinuxSignalInbox::Open(int signal) {
  if (signal < 1 || signal >= internal::kSignalLimit)
    return absl::InvalidArgumentError(absl::StrCat("no signal ", signal));
  absl::Status status = Install(signal);
  if (status.ok()) signal_ = signal;
  return status;
}

bool LinuxSignalInbox::Wait() const {
  Inbox& inbox = InboxOf(signal_);
  while (sem_wait(&inbox.semaphore) != 0) {  // a debugger may end the wait
  }
  while (sem_trywait(&inbox.semaphore) == 0) {
  }
  return !inbox.is_closed.load(std::memory_order_acquire);
}

void LinuxSignalInbox::Close() const {
  if (signal_ == 0) return;
  InboxOf(signal_).is_closed.store(true, std::memory_order_release);
  sem_post(&InboxOf(signal_).semaphore);
}

}  // namespace strobe
