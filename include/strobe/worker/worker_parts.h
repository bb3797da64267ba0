// RunWorkerIfAsked<Traits>: a worker with outputs of the program's own.
#pragma once

#include <utility>

#include "strobe/core/part.h"
#include "strobe/worker/local_worker.h"
#include "strobe/worker/run_worker.h"
#include "strobe/worker/served_session.h"

namespace strobe {

// As RunWorkerIfAsked, with the outputs and the symbolizer of `Traits`, which may be given as to
// BasicProfiler. The other parts must be the default ones.
//
//   int main(int argc, char** argv) {
//     const strobe::Parts<MyTraits> parts{.exporter = strobe::DatadogExporter()};
//     strobe::RunWorkerIfAsked<MyTraits>(argc, argv, parts);
//     strobe::BasicProfiler<MyTraits> profiler({}, parts);
template <class Traits>
void RunWorkerIfAsked(int argc, char** argv, Parts<Traits> parts = {}) {
  internal::RunWorkerIfAsked(argc, argv,
                             [parts = std::move(parts)](const internal::WorkerSocket& socket,
                                                        const internal::SharedArea* own_area) {
                               return internal::ServeProgram<Traits>(socket, parts, own_area);
                             });
}

}  // namespace strobe
