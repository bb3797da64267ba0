// On which CPUs an own thread runs. The rest of scheduling.cc is LinuxPlatform's.
#pragma once

namespace strobe::internal {

// Lets the calling own thread run on the CPUs of the process's first thread, even if the thread
// that started it is pinned elsewhere. False if the system refuses.
bool TakeCpusOfProcess();

}  // namespace strobe::internal
