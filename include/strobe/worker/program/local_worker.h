// What a worker does, for a process of its own or, as a fallback, for a thread of the program.
#pragma once

#include <functional>
#include <memory>

#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/serve_end.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class RemoteChannels;

// Serves the program at the other end of the socket until that ends the session or is gone.
// `own_area` has the channels of the program if that is this process; else nullptr.
using Serve = std::function<ServeEnd(const WorkerSocket& socket, const SharedArea* own_area)>;

// For a process that serves or records others and does nothing else: each program takes some
// descriptors for its threads, images and events.
void RaiseDescriptorLimit();

// If this process was begun as a worker, serves its program, and exits: with status 0 if that was
// served, else 1. Otherwise keeps `serve` for ServeHere.
void RunWorkerIfAsked(int argc, char** argv, Serve serve);

// For profilers with other providers than the default ones: makes their channels.
using MakeChannels = std::unique_ptr<RemoteChannels> (*)(const ThreadOptions& options);
struct WorkerUse {
  const void* channel_parts;  // see runtime/control/worker_link.h
  MakeChannels make;
  Serve serve;  // for worker.fallback; may be empty
  const WorkerUse* next = nullptr;
};
// From now on such profilers have a worker if the options say so. Kept for ever.
void UseWorker(WorkerUse use);
// nullptr if there is none for these parts.
const WorkerUse* FindWorkerUse(const void* channel_parts);

// What the program's main has given to RunWorkerIfAsked; empty if it has not called it.
Serve ServeHere();

// With the default parts; those of `strobe::Profiler`.
ServeEnd ServeByDefault(const WorkerSocket& socket, const SharedArea* own_area);

}  // namespace internal
}  // namespace strobe
