// RunWorkerIfAsked: the first line of a main that can be its own worker.
#pragma once

namespace strobe {

// If this process was begun as a worker, serves its program with the default parts, and exits. Call
// it first in main. Otherwise returns at once, and worker.fallback = in_process uses these parts.
// For outputs of the program's own, see worker_parts.h.
//
//   int main(int argc, char** argv) {
//     strobe::RunWorkerIfAsked(argc, argv);
//     strobe::Profiler profiler({.worker = {.enabled = true}});
void RunWorkerIfAsked(int argc, char** argv);

}  // namespace strobe
