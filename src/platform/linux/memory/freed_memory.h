// Memory that a program has freed, and that its C library keeps.
#pragma once

namespace strobe::internal {

// Gives the system what the C library keeps of freed memory, where that library offers it. Takes
// its locks: for the control plane, and seldom.
void GiveFreedMemoryBack();

}  // namespace strobe::internal
