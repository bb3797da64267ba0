// PoolShortProcesses: divides the CPU time of processes that had too few samples.
#pragma once

#include <span>

#include "loaded_profile.h"

namespace strobe::internal {

// A process that used less CPU time than kEnoughSamples sampling periods has few samples, or none,
// and then all of its time is [residual]. Such processes of one program are one here, as threads of
// one name are in a process (FillProfile): the time of all is divided among the samples of all, in
// proportion to their number, whatever process they are of. Their sum stays the same to the
// nanosecond. If there is no sample, [residual] stays, and so do processes that used more, and
// profiles that do not count the samples of CPU time, or have no period.
void PoolShortProcesses(std::span<LoadedProfile* const> processes);

}  // namespace strobe::internal
