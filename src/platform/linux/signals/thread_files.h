// The files of threads that stay open, over all profilers: those of probes, and events of random
// timers.
#pragma once

#include "strobe/base/signal_safe.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {

// Takes over an open file. Returns a handle, or -1 if no more may be kept: then the caller still
// has it. A fork's child has none of its parent's: it closes them when it needs their places.
int KeepThreadFile(const KnownFile& file);
// The file's number. -1 if the program has closed it, or if a parent of this process has kept it.
int KeptThreadFile(int handle);
// Closes the file, unless the program has, or a parent has kept it.
// A thread may have left the program's files (unshare) since one of them was kept: that one is
// closed at the next call by a thread that has them.
void DropThreadFile(int handle);

// For a signal handler: the number that the file had, whatever it is now. -1 for the handle -1, and
// after DropThreadFile.
STROBE_SIGNAL_SAFE int ThreadFileNumber(int handle) noexcept;
// Whether that number is still the event of perf_event_open that was kept.
STROBE_SIGNAL_SAFE bool IsThreadFileEvent(int handle) noexcept;

}  // namespace strobe::internal
