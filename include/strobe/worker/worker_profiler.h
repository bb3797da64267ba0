// WorkerProfiler: a Profiler whose samples another process drains, aggregates, names and exports.
// RunWorkerIfAsked: that process.
#pragma once

#include "strobe/core/options.h"
#include "strobe/default_traits.h"
#include "strobe/profiler.h"
#include "strobe/scoped_profiler.h"
#include "strobe/worker/client_platform.h"

namespace strobe {

// The parts that run in the program: the default ones, on channels that the worker shares.
struct WorkerTraits : DefaultTraits {
  using Platform = internal::ClientPlatform;
};

// A Profiler with the same calls. The program has no thread, exporter or debug information of the
// profiler's; it has the rings, a socket and the descriptor of the memory with the rings. Start
// begins the worker process, Stop ends it. A profile follows also if the program dies of anything.
//
//   int main(int argc, char** argv) {
//     strobe::RunWorkerIfAsked(argc, argv);
//     strobe::WorkerProfiler profiler;
//     auto registration = profiler.RegisterThread("main");
//     strobe::ScopedWorkerProfiler session(profiler);
//   }
//
// Unimplemented: Record and sampling.toggle_signal. Threads are sampled at random
// instants, whatever sampling.trigger says: a process has no timers on another's clocks. Linux
// only.
using WorkerProfiler = BasicProfiler<WorkerTraits>;
using ScopedWorkerProfiler = BasicScopedProfiler<WorkerTraits>;

template <>
std::unique_ptr<const internal::CoreFactory> internal::MakeCoreFactory<WorkerTraits>();

// If this process was begun as a worker, serves its program with the default parts, and exits. Call
// it first in main. Otherwise returns at once.
void RunWorkerIfAsked(int argc, char** argv);

}  // namespace strobe
