#include "strobe/allocations/allocation_sampling.h"
#include "strobe/default_traits.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"
#include "strobe/worker/served_session.h"
#include "worker_output.h"

namespace strobe::internal {
namespace {

template <class Base, class Encoder>
struct OverHttp : Base {
  using Outputs = OutputList<Output<Encoder, HttpExporter>>;
};

template <class Encoder>
Serve ServeOver(const Encoder& encoder, const HttpExporter& exporter) {
  using Default = OverHttp<DefaultTraits, Encoder>;
  using Allocations = OverHttp<AllocationTraits, Encoder>;
  return [encoder, exporter](const WorkerSocket& socket, const SharedArea* own_area) {
    return ServeProgram<Default, Allocations>(socket, own_area,
                                              {.encoder = encoder, .exporter = exporter},
                                              {.encoder = encoder, .exporter = exporter});
  };
}

}  // namespace

constinit const std::string_view kHttpOutputs = ", datadog, pyroscope, parca, otlp, post";

Serve ServeWithHttpOutput(std::string_view name) {
  if (name == "datadog") return ServeOver<PprofEncoder>(DatadogEncoder(), DatadogExporter());
  if (name == "pyroscope") return ServeOver(PprofEncoder(), PyroscopeExporter());
  if (name == "parca") return ServeOver(PprofEncoder(), ParcaExporter());
  if (name == "post") return ServeOver(PprofEncoder(), PostExporter());
  if (name == "otlp") return ServeOver(OtlpEncoder({.resource = OtlpResource()}), OtlpExporter());
  return {};
}

}  // namespace strobe::internal
