// ProfileSymbolizer: names and lines for one profile after another, from the files on this machine.
#pragma once

#include "absl/status/status.h"
#include "profile/loaded_profile.h"
#include "strobe/platform/native.h"
#include "strobe/platform/platform_symbolizer.h"

namespace strobe::internal {

class ProfileSymbolizer {
 public:
  // What is read of the files is kept for the next profile, within options.cache_bytes.
  explicit ProfileSymbolizer(const ImageSymbolizerOptions& options);

  // Frames of which the files say nothing keep the names that they have.
  absl::Status Symbolize(LoadedProfile& loaded);
  // The same, and frames of which the files have no lines keep theirs, too.
  absl::Status AddLines(LoadedProfile& loaded);

 private:
  const SymbolSearch search_;
  PlatformSymbolizer<NativePlatform> symbolizer_;
};

}  // namespace strobe::internal
