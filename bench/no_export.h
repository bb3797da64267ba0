// A profiler for benchmarks: all of the default one, but it leaves no files behind.
#pragma once

#include <string>

#include "strobe/own_parts.h"

namespace strobe::testing {

struct NoExporter {
  explicit NoExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("nowhere");
  }
};
struct NoExportTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, NoExporter>>;
};

}  // namespace strobe::testing
