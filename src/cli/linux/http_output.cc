#include "../backends.h"
#include "absl/strings/str_cat.h"
#include "strobe/default_traits.h"
#include "strobe/worker/served_session.h"
#include "worker_output.h"

namespace strobe::internal {
namespace {

template <class Encoder>
struct OverHttp : DefaultTraits {
  using Outputs = OutputList<Output<Encoder, HttpExporter>>;
};

}  // namespace

std::string HttpOutputs() { return absl::StrCat(", ", std::string(kBackends)); }

Serve ServeWithHttpOutput(std::string_view name) {
  return WithBackend(name, "", Serve(),
                     []<class E>(const HttpExporter& exporter, const E& encoder) -> Serve {
                       const Parts<OverHttp<E>> parts{.encoder = encoder, .exporter = exporter};
                       return [parts](const WorkerSocket& socket, const SharedArea* own_area) {
                         return ServeProgram<OverHttp<E>>(socket, parts, own_area);
                       };
                     });
}

}  // namespace strobe::internal
