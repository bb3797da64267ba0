// refused: MyExporter | is_constructible
// refused: ExporterOptions
#include "strobe/export/exporter.h"

struct MyExporter {
#ifdef REFUSED
  MyExporter() = default;  // It could not be told where to.
#else
  explicit MyExporter(const strobe::ExporterOptions&) {}
#endif
  absl::StatusOr<std::string> Export(const strobe::ExportRequest&) { return "nowhere"; }
};
static_assert(strobe::Exporter<MyExporter>);
