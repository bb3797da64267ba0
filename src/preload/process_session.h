// The session of this process, from the load of the library to the process's end.
#pragma once

#include <signal.h>

namespace strobe::internal {

// Begins the session if the environment asks for one, and registers the calling thread. Only the
// first call does anything. A failure writes one line to standard error; the program goes on.
void BeginProcess() noexcept;

// Registers the calling thread, under the name that it has, until it ends: by return, by
// pthread_exit or by cancellation. The thread must not be registered yet. Does nothing without a
// session.
void RegisterThisThread() noexcept;

// The same for a thread that has got another name. If that is one of a profiler of the program's
// own, the registration ends.
void RenameThisThread() noexcept;

// Called before the thread waits for these signals, or reads them from a file. If the profiler's is
// one of them, the thread blocks it from now on, and its time has no stacks.
void AwaitSignals(const sigset_t& awaited) noexcept;

// Called before the process executes another program. Ends the session and exports its last period,
// which true says. The same limits as those of the next function hold. Nothing is ended, and false
// returned, where too little has been used since the session's begin to be worth an export.
bool EndBeforeExec() noexcept;
// Called after that, if it was true and the program could not be executed: begins a session anew.
void BeginAfterExec() noexcept;

// Ends the session and exports its last period, or gives up after kMaxExitWaitS seconds. Does
// nothing in a process without a session, such as a vfork's child. Signal-safe: another thread does
// the work, because the caller may have interrupted an allocator.
void EndBeforeExit() noexcept;

}  // namespace strobe::internal
