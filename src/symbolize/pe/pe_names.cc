#include <optional>
#include <utility>

#include "../images/image_names.h"
#include "pe_images.h"

namespace strobe::internal {

ImageNames ReadPeNames(const Module& module, const SymbolFiles& files, const SymbolSearch& search,
                       bool use_system_library) {
  ImageNames names;
  const PeImageSearch found = FindPeImage(module, files, search);
  names.is_final = found.is_file_there;
  if (!found.image.has_value()) return names;
  const PeFile& file = found.image->file;
  names.has_image = true;
  names.functions = file.ReadFunctions();
  if (names.functions.empty() && use_system_library) {
    std::optional<FunctionTable> functions = file.ReadDebugFunctions(found.image->path, files);
    names.is_final = functions.has_value();
    if (functions.has_value()) names.functions = *std::move(functions);
  }
  if (names.functions.empty()) names.functions = file.ReadExports();
  return names;
}

}  // namespace strobe::internal
