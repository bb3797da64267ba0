// WorkerProfiler: a profiler that always has a worker. The program links no exporter and no reader
// of debug information.
#pragma once

#include "strobe/core/options.h"
#include "strobe/default_traits.h"
#include "strobe/profiler.h"
#include "strobe/scoped_profiler.h"
#include "strobe/worker/program/client_platform.h"
#include "strobe/worker/run_worker.h"  // IWYU pragma: export

namespace strobe {

// The parts that run in the program: the default ones, on channels that the worker shares.
struct WorkerTraits : DefaultTraits {
  using Platform = internal::ClientPlatform;
};

// As a Profiler with worker.enabled, without the code of one that has no worker: link strobe-worker
// without its -Wl,-u option (README.md), and let the worker be the command `strobe`. Then
// worker.fallback is none.
using WorkerProfiler = BasicProfiler<WorkerTraits>;
using ScopedWorkerProfiler = BasicScopedProfiler<WorkerTraits>;

template <>
std::unique_ptr<const internal::CoreFactory> internal::MakeCoreFactory<WorkerTraits>();

}  // namespace strobe
