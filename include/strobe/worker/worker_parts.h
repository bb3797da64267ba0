// RunWorkerIfAsked<Traits>: a worker with outputs of the program's own.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#include "strobe/allocations/allocation_provider.h"
#include "strobe/base/visibility.h"
#include "strobe/core/part.h"
#include "strobe/default_traits.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/control/worker_link.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/program/remote_channels.h"
#include "strobe/worker/run_worker.h"
#include "strobe/worker/serve/serve_program.h"

namespace strobe {

namespace STROBE_HIDDEN internal {

// The clock, the ring and the unwinder are those that a worker has.
template <class Traits>
inline constexpr bool kHasDefaultCaptures =
    std::is_same_v<typename Traits::Platform, DefaultTraits::Platform>&&
        std::is_same_v<typename Traits::Clock, DefaultTraits::Clock>&&
            std::is_same_v<typename Traits::Ring, DefaultTraits::Ring>&&
                std::is_same_v<typename Traits::Unwinder, DefaultTraits::Unwinder>;

// True if a worker knows the levels of all providers: see LevelMemory.
template <class List>
inline constexpr bool kSharesLevels = false;
template <class... Providers>
inline constexpr bool kSharesLevels<ProviderList<Providers...>> =
    ((!LevelProvider<Providers> || std::is_same_v<Providers, AllocationProvider>)&&...);

// From now on a profiler of these Traits can have a worker. `serve` is for worker.fallback.
template <class Traits>
void UseWorkerFor(const Serve& serve) {
  static_assert(kHasDefaultCaptures<Traits>,
                "with a worker, the platform, the clock, the ring and the unwinder are the default "
                "ones");
  using Providers = typename Traits::Providers;
  static_assert(kSharesLevels<Providers>,
                "a worker knows the levels of AllocationProvider, and of no other LevelProvider");
  if constexpr (!std::is_same_v<Providers, DefaultTraits::Providers>) {
    UseWorker({.channel_parts = ChannelParts<Traits>(),
               .make = [](const ThreadOptions& options) -> std::unique_ptr<RemoteChannels> {
                 return std::make_unique<ChannelsOf<RemoteTraitsOf<Providers>>>(options);
               },
               .serve = serve});
  }
}

}  // namespace internal

// As RunWorkerIfAsked, with the outputs, the symbolizer and the providers of `Traits`, which may be
// given as to BasicProfiler. The other parts must be the default ones. A program whose worker is
// the command `strobe` needs the call if its providers are not the default ones; the command serves
// those of Profiler and of AllocationTraits.
//
//   int main(int argc, char** argv) {
//     const strobe::Parts<MyTraits> parts{.exporter = strobe::DatadogExporter()};
//     strobe::RunWorkerIfAsked<MyTraits>(argc, argv, parts);
//     strobe::BasicProfiler<MyTraits> profiler({}, parts);
template <class Traits>
void RunWorkerIfAsked(int argc, char** argv, Parts<Traits> parts = {}) {
  const internal::Serve serve = [parts = std::move(parts)](const internal::WorkerSocket& socket,
                                                           const internal::SharedArea* own_area) {
    return internal::ServeProgram<Traits>(socket, own_area, parts);
  };
  internal::RunWorkerIfAsked(argc, argv, serve);
  internal::UseWorkerFor<Traits>(serve);
}

}  // namespace strobe
