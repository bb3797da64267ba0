#include "absl/strings/str_cat.h"
#include "record/backends.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/default_traits.h"
#include "strobe/worker/serve/serve_program.h"
#include "worker_output.h"

namespace strobe::internal {
namespace {

template <class Base, class Encoder>
struct OverHttp : Base {
  using Outputs = OutputList<Output<Encoder, HttpExporter>>;
};

}  // namespace

std::string HttpOutputs() { return absl::StrCat(", ", std::string(kBackends)); }

Serve ServeWithHttpOutput(std::string_view name) {
  const auto serve = []<class E>(const HttpExporter& exporter, const E& encoder) -> Serve {
    using Default = OverHttp<DefaultTraits, E>;
    using Allocations = OverHttp<AllocationTraits, E>;
    return [encoder, exporter](const WorkerSocket& socket, const SharedArea* own_area) {
      return ServeProgram<Default, Allocations>(socket, own_area,
                                                {.encoder = encoder, .exporter = exporter},
                                                {.encoder = encoder, .exporter = exporter});
    };
  };
  return WithBackend(name, "", Serve(), serve);
}

}  // namespace strobe::internal
