// FileExporter: a DirectoryExporter that writes to the directories of a platform.
#pragma once

#include "strobe/core/options.h"
#include "strobe/export/directory_exporter.h"
#include "strobe/export/exporter.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform.h"

namespace strobe {

template <Platform P>
class PlatformFileExporter : public DirectoryExporter {
 public:
  explicit PlatformFileExporter(const ExporterOptions& options)
      : DirectoryExporter(P::Directories(), options) {}
};

using FileExporter = PlatformFileExporter<NativePlatform>;
static_assert(Exporter<FileExporter>);

}  // namespace strobe
