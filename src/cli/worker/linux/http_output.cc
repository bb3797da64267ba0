#include <optional>

#include "absl/strings/str_cat.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/default_traits.h"
#include "strobe/worker/serve/serve_program.h"
#include "worker/backends.h"
#include "worker_output.h"

namespace strobe::internal {
namespace {

template <class Base>
struct OverHttp : Base {
  using Outputs = OutputList<Output<PprofEncoder, HttpExporter>>;
};

}  // namespace

std::string HttpOutputs() { return absl::StrCat(", ", BackendNames()); }

Serve ServeWithHttpOutput(std::string_view name) {
  const std::optional<HttpExporter> exporter = BackendExporter(name, "");
  if (!exporter) return {};
  return [exporter = *exporter](const WorkerSocket& socket, const SharedArea* own_area) {
    return ServeProgram<OverHttp<DefaultTraits>, OverHttp<AllocationTraits>>(
        socket, own_area, {.exporter = exporter}, {.exporter = exporter});
  };
}

}  // namespace strobe::internal
