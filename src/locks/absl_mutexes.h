// Waits for mutexes of Abseil, by the hook that Abseil has for them.
#pragma once

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Has such waits given to NoteContention from now on, or not. One call at a time.
void SetAbslMutexSampling(bool is_wanted);

// False if it is not wanted, or not possible.
[[nodiscard]] bool IsSamplingAbslMutexes();

}  // namespace internal
}  // namespace strobe
