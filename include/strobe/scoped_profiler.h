// ScopedProfiler: a session as a scope. BasicScopedProfiler is the template for any BasicProfiler;
// its argument is deduced: `strobe::BasicScopedProfiler session(profiler);`.
#pragma once

#include "absl/status/status.h"
#include "strobe/profiler.h"
#include "strobe/runtime/control/abstract_core.h"

namespace strobe {

// Starts the profiler at construction. Stops it, drains and exports at the end of the scope. A
// failure writes one line to stderr, and a failed start is also status(); the program continues
// without profiles.
template <class Traits>
class [[nodiscard]] BasicScopedProfiler {
 public:
  explicit BasicScopedProfiler(BasicProfiler<Traits>& profiler)
      : profiler_(profiler), status_(profiler.Start()) {
    if (!status_.ok() && *profiler.options().enabled)
      profiler_.handle_.Warn("cannot start", status_);
  }
  ~BasicScopedProfiler() {
    if (!status_.ok()) return;
    const absl::Status stopped = profiler_.Stop();
    // The program may have called Stop, and a fork's child has no session.
    if (!stopped.ok() && stopped != internal::NotRunning())
      profiler_.handle_.Warn("the last profile was not exported", stopped);
  }
  BasicScopedProfiler(const BasicScopedProfiler&) = delete;
  BasicScopedProfiler& operator=(const BasicScopedProfiler&) = delete;

  // OK if the session began, otherwise the reason why not.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  BasicProfiler<Traits>& profiler_;
  const absl::Status status_;
};

}  // namespace strobe
