// The handler of the interrupting signal. Data plane, but for Install.
#pragma once

#include <signal.h>

#include "absl/status/status.h"
#include "loader_mutex.h"
#include "strobe/platform/platform.h"

namespace strobe::internal {

// The handler itself; named here so that tests can call it as another handler would that chains to
// it.
void HandleSignal(int signal, siginfo_t* info, void* context);

absl::Status InstallSignalHandler(int signal);
HandlerState SignalHandlerState(int signal);
// The signal to interrupt threads by, as things are now: one that the program does not use.
int ChooseSignal();
// The signals that InstallSignalHandler has taken so far.
sigset_t InstalledSignals();
// Held while a handler is installed. A fork takes it, so that in its child what is said to be
// installed is.
BriefLock& InstallMutex();

}  // namespace strobe::internal
