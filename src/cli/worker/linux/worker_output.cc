#include "worker_output.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/default_traits.h"
#include "strobe/platform/native.h"
#include "strobe/worker/serve/serve_program.h"

namespace strobe::internal {
namespace {

ServeEnd ServeToFiles(const WorkerSocket& socket, const SharedArea* own_area) {
  return ServeProgram<DefaultTraits, AllocationTraits>(socket, own_area, {}, {});
}

}  // namespace

absl::StatusOr<Serve> ServeWithAskedOutput() {
  const std::string name =
      NativePlatform::EnvironmentVariable("STROBE_WORKER_OUTPUT").value_or("files");
  if (name == "files") return Serve(&ServeToFiles);
  if (Serve serve = ServeWithHttpOutput(name)) return serve;
  return absl::InvalidArgumentError(
      absl::StrCat("STROBE_WORKER_OUTPUT=", name, ": expected one of files", HttpOutputs()));
}

}  // namespace strobe::internal
