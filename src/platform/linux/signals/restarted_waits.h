// RestartWait: starts a wait again that the profiler's signal has ended.
#pragma once

#include <ucontext.h>

#include "strobe/base/signal_safe.h"

namespace strobe::internal {

// A thread that ran when the signal was sent may have begun to wait when it arrives. The kernel
// ends the wait with EINTR where SA_RESTART has no effect, as in poll, epoll_wait and nanosleep,
// and many programs do not expect that. If the interrupted code has just returned from such a wait
// with EINTR, this lets it make the same system call again. The wait began less than an
// interruption's time ago, so a time-out grows by some microseconds at most.
//
// On x86-64; elsewhere a register that the call needs is lost.
STROBE_SIGNAL_SAFE void RestartWait(ucontext_t& context);

}  // namespace strobe::internal
