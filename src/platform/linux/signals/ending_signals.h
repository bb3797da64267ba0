// What a preloaded library hides of LinuxEndingSignals from the program.
#pragma once

#include <signal.h>

namespace strobe::internal {

// True for the handler that delays a signal: to the program, that is the default action.
bool DelaysEnd(const struct sigaction& action);

// What stands for the default action of the signal while this process awaits its end; nullptr if
// nothing does.
const struct sigaction* DelayedEnd(int signal);

}  // namespace strobe::internal
