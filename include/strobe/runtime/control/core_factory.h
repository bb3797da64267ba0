// CoreFactoryFor: the CoreFactory for any parts. A file that instantiates it compiles all of them.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/clock.h"
#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/export/parts.h"
#include "strobe/platform/platform.h"
#include "strobe/ring/sample_ring.h"
#include "strobe/runtime/control/abstract_core.h"
#include "strobe/runtime/control/profiler_core.h"
#include "strobe/runtime/control/worker_link.h"
#include "strobe/symbolize/symbolizer.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The default of threads.ring_bytes where a program brings events: a burst of them comes between
// two drains, and each takes its stack along until its code has tables.
inline constexpr std::int64_t kEventRingBytes = 256 << 10;

template <class Traits>
class CoreFactoryFor final : public CoreFactory {
  static_assert(Clock<typename Traits::Clock>, "Traits::Clock is not a Clock");
  static_assert(SampleRing<typename Traits::Ring>, "Traits::Ring is not a SampleRing");
  static_assert(Unwinder<typename Traits::Unwinder>, "Traits::Unwinder is not an Unwinder");
  static_assert(Symbolizer<typename Traits::Symbolizer>, "Traits::Symbolizer is not a Symbolizer");
  static_assert(Platform<typename Traits::Platform>, "Traits::Platform is not a Platform");

 public:
  explicit CoreFactoryFor(Parts<Traits> parts) : parts_(std::move(parts)) {}

  [[nodiscard]] std::unique_ptr<AbstractCore> Make(const ProfilerOptions& options) const override {
    absl::Status no_worker;
    if (*options.worker.enabled) {
      absl::StatusOr<std::unique_ptr<AbstractCore>> core =
          MakeWorkerCore(options, ChannelParts<Traits>());
      if (core.ok()) return *std::move(core);
      no_worker = core.status();
    }
    return std::make_unique<ProfilerCore<Traits>>(options, parts_, std::move(no_worker));
  }

  [[nodiscard]] ProfilerOptions WithEnvironment(ProfilerOptions options) const override {
    using Platform = typename Traits::Platform;
    if (Traits::Providers::kBringsEvents && !options.threads.ring_bytes.is_set())
      options.threads.ring_bytes = Option<std::int64_t>::Default{kEventRingBytes};
    ApplyEnvironment(
        options, [](const char* name) { return Platform::EnvironmentVariable(name); },
        [](const std::string& line) { Platform::WriteLine(line); });
    WarnOfUnknownVariables<Platform>();
    return options;
  }

  void WriteLine(const std::string& line) const override { Traits::Platform::WriteLine(line); }

 private:
  const Parts<Traits> parts_;
};

template <class Traits>
std::unique_ptr<const CoreFactory> MakeCoreFactoryOf(Parts<Traits> parts) {
  std::unique_ptr<const CoreFactory> factory;
  static_cast<void>(HasMemoryFor(
      [&] { factory = std::make_unique<const CoreFactoryFor<Traits>>(std::move(parts)); }));
  return factory;
}

template <class Traits>
std::unique_ptr<const CoreFactory> MakeCoreFactory() {
  static_assert(Parts<Traits>::kCanBeMade,
                "a part of these Traits has to be given: BasicProfiler<Traits> profiler(options, "
                "{.exporter = ...})");
  if constexpr (Parts<Traits>::kCanBeMade) return MakeCoreFactoryOf<Traits>(Parts<Traits>{});
}

}  // namespace internal
}  // namespace strobe
