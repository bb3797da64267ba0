// STROBE_CHECK stops the program with one line on stderr. Use it for misuse of the control plane by
// the program itself, such as a registration that ends on another thread, or a Profiler destroyed
// under live registrations. Never use it for data that the data plane reads, or for a failure of
// the profiler.
#pragma once

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Writes "strobe: FILE:LINE: MESSAGE" to stderr and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* message);

}  // namespace strobe::internal
STROBE_HIDDEN_END

#define STROBE_CHECK(condition, message)               \
  (static_cast<bool>(condition) ? static_cast<void>(0) \
                                : ::strobe::internal::CheckFailed(__FILE__, __LINE__, message))
