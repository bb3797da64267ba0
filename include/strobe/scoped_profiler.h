// ScopedProfiler: a session as a scope. BasicScopedProfiler is that of a BasicProfiler with any
// parts; its argument is deduced: `strobe::BasicScopedProfiler session(profiler);`.
#pragma once

#include "absl/status/status.h"
#include "strobe/profiler.h"

namespace strobe {

// Starts the profiler now; stops it, drains and exports at the end of the scope. A failure is a
// status and one line on stderr; the program goes on, without profiles.
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
    // Stopped by hand, or in a fork's child, which never started it.
    if (!stopped.ok() && !absl::IsFailedPrecondition(stopped))
      profiler_.handle_.Warn("the last profile was not exported", stopped);
  }
  BasicScopedProfiler(const BasicScopedProfiler&) = delete;
  BasicScopedProfiler& operator=(const BasicScopedProfiler&) = delete;

  // Whether the session began, and if not, why.
  [[nodiscard]] const absl::Status& status() const { return status_; }

 private:
  BasicProfiler<Traits>& profiler_;
  const absl::Status status_;
};

}  // namespace strobe
