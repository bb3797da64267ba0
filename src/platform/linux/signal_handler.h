// The handler of the interrupting signal. Data plane, but for Install.
#pragma once

#include <signal.h>

#include <mutex>

#include "absl/status/status.h"
#include "strobe/platform/platform.h"

namespace strobe::internal {

// The handler itself; named here so that tests can call it as another handler would that chains to it.
void HandleSignal(int signal, siginfo_t* info, void* context);

absl::Status InstallSignalHandler(int signal);
HandlerState SignalHandlerState(int signal);
// The signals that InstallSignalHandler has taken so far.
sigset_t InstalledSignals();
// Held while a handler is installed; a fork takes it, so that its child can install one.
std::mutex& InstallMutex();

}  // namespace strobe::internal
