#include <memory>
#include <optional>
#include <utility>

#include "image_names.h"
#include "pe_symbols.h"

namespace strobe::internal {

ImageNames ReadPeNames(const Module& module, const SymbolFiles& files, bool use_system_library) {
  ImageNames names;
  const std::unique_ptr<FileSource> source = files.Open(module.path);
  names.is_final = source != nullptr;
  if (source == nullptr) return names;
  const std::optional<PeFile> file = PeFile::Open(*source, module.build_id);
  if (!file.has_value()) return names;
  names.has_image = true;
  names.functions = file->ReadFunctions();
  if (names.functions.empty() && use_system_library) {
    std::optional<FunctionTable> functions = file->ReadDebugFunctions(module.path, files);
    names.is_final = functions.has_value();
    if (functions.has_value()) names.functions = *std::move(functions);
  }
  if (names.functions.empty()) names.functions = file->ReadExports();
  return names;
}

}  // namespace strobe::internal
