// SessionToggle: begins and ends sessions, or writes what is kept, when a signal comes from
// outside.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/platform/refused_thread.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of a platform without signals.
struct NoSignalInbox {};
template <class P>
struct SignalInboxOf {
  using Type = NoSignalInbox;
};
template <ReceivesSignals P>
struct SignalInboxOf<P> {
  using Type = typename P::SignalInbox;
};

// Has a thread of its own from its construction to its end, whether a session runs or not.
template <class Platform>
class SessionToggle {
 public:
  // For each signal, calls toggle() on that thread. A toggle begins or ends a session, which may
  // take long: all signals that come meanwhile count as one. toggle() throws nothing. `option` is
  // the name that status() has of the option with the signal; it must outlive this object.
  SessionToggle(const char* option, int signal, std::function<void()> toggle) : option_(option) {
    if (!HasMemoryFor([&] { status_ = Begin(signal, std::move(toggle)); })) status_ = OutOfMemory();
  }
  // Waits for a toggle that is under way.
  ~SessionToggle() {
    if constexpr (ReceivesSignals<Platform>) inbox_.Close();
    thread_.Join();
  }
  SessionToggle(const SessionToggle&) = delete;
  SessionToggle& operator=(const SessionToggle&) = delete;

  // OK, or why the signal toggles nothing.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  absl::Status Begin([[maybe_unused]] int signal, [[maybe_unused]] std::function<void()> toggle) {
    if constexpr (ReceivesSignals<Platform>) {
      if (const absl::Status status = inbox_.Open(signal); !status.ok())
        return {status.code(), std::string(option_) + ": " + std::string(status.message())};
      thread_ = Platform::RunOnOwnThread("strobe-toggle", [this, toggle = std::move(toggle)] {
        while (inbox_.Wait()) toggle();
      });
      return StatusOfThread(option_, thread_);
    } else {
      return absl::UnimplementedError(std::string(option_) + ": this system has no signals");
    }
  }

  const char* const option_;
  absl::Status status_;
  typename SignalInboxOf<Platform>::Type inbox_;
  typename Platform::OwnThread thread_;
};

}  // namespace internal
}  // namespace strobe
