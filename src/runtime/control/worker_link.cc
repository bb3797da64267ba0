#include "strobe/runtime/control/worker_link.h"

#include "absl/status/status.h"

// In strobe-worker. Nothing here makes a linker take that library: its users do.
#if defined(__ELF__)
extern "C" __attribute__((weak, visibility("hidden"))) void strobe_make_worker_core(
    const strobe::ProfilerOptions& options, const void* channel_parts,
    absl::StatusOr<std::unique_ptr<strobe::internal::AbstractCore>>& core);
#endif

namespace strobe::internal {

absl::StatusOr<std::unique_ptr<AbstractCore>> MakeWorkerCore(
    [[maybe_unused]] const ProfilerOptions& options, [[maybe_unused]] const void* channel_parts) {
  absl::StatusOr<std::unique_ptr<AbstractCore>> core = absl::FailedPreconditionError(
      "worker.enabled: the program does not link the library strobe-worker");
#if defined(__ELF__)
  if (&strobe_make_worker_core != nullptr) strobe_make_worker_core(options, channel_parts, core);
#endif
  return core;
}

}  // namespace strobe::internal
