// The signal masks of the program's threads, as the program sees them.
#pragma once

#include <signal.h>

#include <cstdint>

namespace strobe::internal {

// A thread that blocks the profiler's signal could not be sampled, and pools and libraries block
// all signals in threads that are to get none. So the threads of the program let that signal
// through, and the program does not see it: no wait ends because of it (RestartWait), and the masks
// that the program reads are those that it has set. A thread that itself waits for the signal, as
// in sigwait, blocks it from then on, and is not sampled.

using SetMask = int(int how, const sigset_t* set, sigset_t* before);

// Called by each thread before it registers: lets the profiler's signals through, which it blocks.
void TakeMask();

// What the calling thread hides of its mask, for a thread that it starts: that one begins with the
// same mask. Call InheritMask there before TakeMask.
std::uint64_t HiddenMask();
void InheritMask(std::uint64_t hidden);

// Does what sigprocmask and pthread_sigmask promise, by `next`, which has their result.
// Signal-safe.
int SetMaskOfProgram(SetMask& next, int how, const sigset_t* set, sigset_t* before);

// Called when the program has set an action: if the signal was the profiler's, it is the program's
// from now on. The calling thread blocks it again; others do at their next change of the mask.
void GiveUpSignal(int signal);

// Called before the thread waits for these signals, or reads them from a file. True if the
// profiler's is one of them: the thread must not be registered then. Block it by BlockAwaited, and
// register the thread again.
bool AwaitsProfilersSignal(const sigset_t& awaited);
void BlockAwaited();

}  // namespace strobe::internal
