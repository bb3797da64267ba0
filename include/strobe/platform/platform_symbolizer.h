// PlatformSymbolizer: an ImageSymbolizer that reads the files of a platform.
#pragma once

#include <concepts>
#include <utility>

#include "strobe/platform/platform.h"
#include "strobe/symbolize/image_symbolizer.h"
#include "strobe/symbolize/symbolizer.h"

namespace strobe {

template <Platform P>
class PlatformSymbolizer : public ImageSymbolizer {
 public:
  explicit PlatformSymbolizer(ImageSymbolizerOptions options = {})
      : ImageSymbolizer(P::Files(), std::move(options)) {}
  // As a profiler makes it. What debuginfod's client has fetched for the user counts too. A
  // template, so that {.mode = ...} alone means the other options.
  template <std::same_as<SymbolOptions> O>
  explicit PlatformSymbolizer(const O& options)
      : PlatformSymbolizer(ImageSymbolizerOptions::From(
            options,
            DebuginfodCache([](const char* name) { return P::EnvironmentVariable(name); }))) {}
};

}  // namespace strobe
