#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "byte_source.h"
#include "elf_file.h"
#include "elf_images.h"
#include "image_names.h"

namespace strobe::internal {
namespace {

ImageNames ReadVdsoNames(const Module& module, const SymbolFiles& files) {
  const SpanSource source(files.OwnVdso(module.load_bias, module.start, module.limit));
  const std::optional<ElfFile> file = OpenFor(module, source);
  return {.functions = file.has_value() ? file->ReadFunctions() : FunctionTable(),
          .stubs = {},
          .has_image = file.has_value(),
          .is_final = file.has_value()};
}

}  // namespace

ImageNames ReadElfNames(const Module& module, const SymbolFiles& files,
                        const SymbolSearch& search) {
  if (module.kind == ModuleKind::kVdso) return ReadVdsoNames(module, files);
  std::vector<ElfImage> images;
  VisitElfImages(module, files, search, [&](ElfImage&& image) {
    images.push_back(std::move(image));
    return images.back().file.symbols() != ElfFile::Symbols::kFull;
  });
  ImageNames names;
  names.has_image = !images.empty();
  const auto best = std::max_element(
      images.begin(), images.end(),
      [](const ElfImage& a, const ElfImage& b) { return a.file.symbols() < b.file.symbols(); });
  if (best != images.end()) names.functions = best->file.ReadFunctions();
  for (const ElfImage& image : images) {
    if (names.stubs.empty()) names.stubs = image.file.ReadLinkageStubs(names.functions);
  }
  names.is_final = !names.empty();  // else the file may be there the next time
  return names;
}

}  // namespace strobe::internal
