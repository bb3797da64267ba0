#pragma once

#include "strobe/core/thread_info.h"

namespace strobe::internal {

// The calling thread's stack; empty if the system does not tell. Allocates at most once a process:
// an allocator would keep the freed memory for a thread that registers and then only waits.
StackBounds CurrentStackBounds();

}  // namespace strobe::internal
