#include "strobe/platform/process_context.h"

namespace strobe {

class ProcessContext::Mapping {};

ProcessContext::ProcessContext(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}
ProcessContext::ProcessContext(ProcessContext&& other) noexcept = default;
ProcessContext& ProcessContext::operator=(ProcessContext&& other) noexcept = default;
ProcessContext::~ProcessContext() = default;

absl::StatusOr<ProcessContext> ProcessContext::Publish(const OtlpOptions& /*options*/) {
  return absl::UnimplementedError("a process's context is published on Linux alone");
}
absl::Status ProcessContext::Update(const OtlpOptions& /*options*/) { return absl::OkStatus(); }

}  // namespace strobe
