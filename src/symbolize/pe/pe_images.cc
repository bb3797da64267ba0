#include "pe_images.h"

#include <utility>

namespace strobe::internal {

PeImageSearch FindPeImage(const Module& module, const SymbolFiles& files,
                          const SymbolSearch& search) {
  PeImageSearch found;
  for (const std::string& path : ImagePaths(module, search)) {
    std::shared_ptr<const FileSource> source = files.Open(path);
    if (source == nullptr) continue;
    found.is_file_there = true;
    std::optional<PeFile> file = PeFile::Open(*source, module.build_id);
    if (!file.has_value()) continue;
    found.image.emplace(PeImageFile{path, std::move(source), *std::move(file)});
    break;
  }
  return found;
}

SectionBytes OpenSection(const PeImageFile& image, const std::string& name) {
  const std::optional<PeFile::SectionPlace> place = image.file.FindSection(name);
  if (!place.has_value()) return {};
  return {image.source, place->offset, place->bytes};
}

}  // namespace strobe::internal
