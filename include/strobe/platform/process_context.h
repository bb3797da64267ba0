// ProcessContext: what this process says of itself to profilers of the whole host.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/encode/otlp_encoder.h"

namespace strobe {

// Publishes a resource's attributes in this process's memory, where a profiler that samples the
// host finds them, such as OpenTelemetry's by eBPF: its profiles then name the service as ours do.
// The format is OpenTelemetry's enhancement proposal 4719, version 2 of its header.
//
//   auto context = strobe::ProcessContext::Publish({.resource = strobe::OtlpResource()});
//
// The program pays two pages and the call; readers find the pages by themselves. Movable. The
// destructor removes the attributes. A fork's child has none of them, and may publish its own.
// Linux only. Control plane.
class ProcessContext {
 public:
  // What OtlpOptions::resource leaves out is added, as in exports: the service's and the program's
  // name, the process id, the machine. AlreadyExists if the process has published a context, by
  // this class or another library. ResourceExhausted if the message is longer than
  // kMaxMessageBytes, or memory runs out. Unavailable if the system refuses the memory or a name
  // for it. Unimplemented on systems other than Linux.
  static absl::StatusOr<ProcessContext> Publish(const OtlpOptions& options);

  // What OpenTelemetry's reader accepts.
  static constexpr std::size_t kMaxMessageBytes = 65536;

  ProcessContext(ProcessContext&& other) noexcept;
  ProcessContext& operator=(ProcessContext&& other) noexcept;
  ~ProcessContext();

  // Puts other attributes in their place. A reader sees the old ones or the new ones, never a part
  // of each. One thread at a time. FailedPrecondition in a fork's child, whose parent it was that
  // published; else the errors of Publish. After an error the old attributes stay.
  absl::Status Update(const OtlpOptions& options);

 private:
  class Mapping;
  explicit ProcessContext(std::unique_ptr<Mapping> mapping);
  static absl::StatusOr<ProcessContext> TryToPublish(const OtlpOptions& options);
  absl::Status TryToUpdate(const OtlpOptions& options);

  std::unique_ptr<Mapping> mapping_;
};

}  // namespace strobe
