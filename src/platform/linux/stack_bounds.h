#pragma once

#include "strobe/core/thread_info.h"

namespace strobe::internal {

// The calling thread's stack; empty where the system does not say. Allocates at most once a
// process, so that a thread which registers and then waits is not left with freed memory that
// no other code can use.
StackBounds CurrentStackBounds();

}  // namespace strobe::internal
