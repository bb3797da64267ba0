// refused: exporter.Export(request)
#include "strobe/export/exporter.h"

struct MyExporter {
#ifdef REFUSED
  absl::Status Export(const strobe::ExportRequest&) {
    return absl::OkStatus();
  }  // It must say where the profile went.
#else
  absl::StatusOr<std::string> Export(const strobe::ExportRequest&) { return "nowhere"; }
#endif
};
static_assert(strobe::Exporter<MyExporter>);
