#include "worker_output.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/platform/native.h"

namespace strobe::internal {

absl::StatusOr<Serve> ServeWithAskedOutput() {
  const std::string name =
      NativePlatform::EnvironmentVariable("STROBE_WORKER_OUTPUT").value_or("files");
  if (name == "files") return Serve(&ServeByDefault);
  if (Serve serve = ServeWithHttpOutput(name)) return serve;
  return absl::InvalidArgumentError(
      absl::StrCat("STROBE_WORKER_OUTPUT=", name, ": expected one of files", HttpOutputs()));
}

}  // namespace strobe::internal
