// RemoteProfiler: a profiler that always has a worker. The program links no exporter and no reader
// of debug information.
#pragma once

#include "strobe/core/options.h"
#include "strobe/default_traits.h"
#include "strobe/profiler.h"
#include "strobe/scoped_profiler.h"
#include "strobe/worker/program/remote_platform.h"
#include "strobe/worker/run_worker.h"  // IWYU pragma: export

namespace strobe {

// The parts that run in the program: the default ones, on channels that the worker shares.
struct RemoteTraits : DefaultTraits {
  using Platform = internal::RemotePlatform;
};

// As a Profiler with worker.enabled, without the code of one that has no worker: link strobe-worker
// without its -Wl,-u option (README.md), and let the worker be the command `strobe`. Then
// worker.fallback is none.
using RemoteProfiler = BasicProfiler<RemoteTraits>;
using ScopedRemoteProfiler = BasicScopedProfiler<RemoteTraits>;

template <>
std::unique_ptr<const internal::CoreFactory> internal::MakeCoreFactory<RemoteTraits>();

}  // namespace strobe
