#include "worker.h"

namespace strobe::internal {

void ServeIfAsked(int /*argc*/, char** /*argv*/) {}

absl::Status ListenForPrograms(const std::string& /*path*/) {
  return absl::UnimplementedError("workers: only on Linux, x86-64");
}

}  // namespace strobe::internal
