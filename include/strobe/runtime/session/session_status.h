// The statuses of calls that find a session, or none.
#pragma once

#include "absl/status/status.h"
#include "strobe/base/memory_guard.h"

namespace strobe::internal {

// The status of a call that needs a running session, if there is none.
[[nodiscard]] inline absl::Status NotRunning() noexcept {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, "the profiler is not running");
}
// The status of a call that begins a session, if one runs already.
[[nodiscard]] inline absl::Status AlreadyRunning() noexcept {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, "the profiler is already running");
}

}  // namespace strobe::internal
