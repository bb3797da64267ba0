// LetThrough: the signals that a thread lets through for a profiler, although the program blocks
// them there.
#pragma once

#include <signal.h>

#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/platform/signal_set.h"

namespace strobe::internal {

// Those of the calling thread, as a set of signal_set.h. In the thread's static block, because the
// handler asks.
[[gnu::tls_model("initial-exec")]] extern constinit thread_local std::uint64_t let_through;

// Lets the signal through on the calling thread, which blocks it.
void LetThrough(int signal);
// The calling thread blocks the signal again, if it has let it through until now.
void CeaseToLetThrough(int signal);

// Called by the handler for a signal that is not the profiler's. True if the thread would not have
// got it but for LetThrough: then the thread blocks it from now on, and the signal is sent once
// more, so that it waits where the program expects it.
STROBE_SIGNAL_SAFE bool GiveBack(int signal, const siginfo_t* info, void* context);

}  // namespace strobe::internal
