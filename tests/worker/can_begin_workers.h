// Whether a worker process can be begun here.
#pragma once

#include "strobe/base/sanitizers.h"

namespace strobe::testing {

// ThreadSanitizer takes each clone for a fork, and ends the program at the second one, which is
// nested in the first.
inline constexpr bool kCanBeginWorkers = !internal::kHasThreadSanitizer;

}  // namespace strobe::testing
