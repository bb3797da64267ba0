// RefusedThread: the status of a call that needs a thread of RunOnOwnThread, and has got none.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// ResourceExhausted, with what the thread is for and why the system has refused it: an errno. 0
// means that memory has run out.
[[nodiscard]] absl::Status RefusedThread(std::string_view use, int error) noexcept;

// OK if the thread runs.
template <class OwnThread>
[[nodiscard]] absl::Status StatusOfThread(std::string_view use, const OwnThread& thread) noexcept {
  return thread.IsRunning() ? absl::OkStatus() : RefusedThread(use, thread.error());
}

}  // namespace internal
}  // namespace strobe
