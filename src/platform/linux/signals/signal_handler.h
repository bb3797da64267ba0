// The handler of the interrupting signal. HandleSignal is data plane, all else control plane.
#pragma once

#include <signal.h>

#include <cstdint>

#include "absl/status/status.h"
#include "loader_mutex.h"
#include "strobe/platform/platform.h"

namespace strobe::internal {

// Linux' signals are 1..64.
inline constexpr int kSignalLimit = 65;

// The overrun of a signal that requests a sample: see LinuxPlatform::Interrupt.
inline constexpr int kRequest = -1;
inline constexpr int kRequestOfRunningThread = -2;

// A request of a running thread is late after this time: see CaptureTarget::is_late. A thread on a
// CPU gets a signal within some 20 us, in a virtual machine too. One that waits for a CPU gets it
// after milliseconds, but for the one that follows the sender on its CPU.
inline constexpr std::int64_t kLateNs = 40'000;

// Sends such a signal, with this payload, to a thread of a process. With `may_be_late`, the signal
// says when it was sent. False if the thread has ended.
bool SendRequest(std::uint64_t process_id, std::uint64_t thread_id, std::uint64_t payload,
                 int signal, bool was_running, bool may_be_late = false);

// The handler. Tests call it as a handler that chains to it would.
void HandleSignal(int signal, siginfo_t* info, void* context);

absl::Status InstallSignalHandler(int signal);
HandlerState SignalHandlerState(int signal);
// A signal that the program does not use now.
int ChooseSignal();
// The signals that InstallSignalHandler has taken so far.
sigset_t InstalledSignals();
// Held while a handler is installed. A fork takes it, so that the child's record of installed
// handlers is true.
BriefLock& InstallMutex();

}  // namespace strobe::internal
