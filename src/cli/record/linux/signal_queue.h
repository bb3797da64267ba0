// SignalQueue: this process's signals, read in its own time instead of being handled at once.
#pragma once

#include <sys/signalfd.h>

#include <csignal>
#include <optional>

#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Blocks the signals for the calling thread as long as it lives. Those that have come until its end
// and were not read are dropped.
class SignalQueue {
 public:
  explicit SignalQueue(const sigset_t& signals) {
    sigprocmask(SIG_BLOCK, &signals, &before_);
    descriptor_ = Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~SignalQueue() {
    while (Next()) {
    }
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }
  SignalQueue(const SignalQueue&) = delete;
  SignalQueue& operator=(const SignalQueue&) = delete;

  [[nodiscard]] std::optional<signalfd_siginfo> Next() const {
    signalfd_siginfo info{};
    const bool has_one = read(descriptor_.get(), &info, sizeof(info)) == sizeof(info);
    return has_one ? std::optional(info) : std::nullopt;
  }
  // Readable when there is a signal.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // The signals that were blocked before.
  [[nodiscard]] const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
  Descriptor descriptor_;
};

}  // namespace internal
}  // namespace strobe
