// Tells a thread that waits from one that runs, by the program counter of the stopped thread.
#pragma once

#include "strobe/base/address.h"

namespace strobe::internal {

// True if a thread that is stopped at `pc` waits inside a system call whose purpose is to wait. A
// thread that waits inside another one, for example in a read of a pipe, looks as if it ran. The
// first call waits for the loader's lock.
bool IsInWaitCall(Address pc);

}  // namespace strobe::internal
