#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "byte_source.h"
#include "elf_file.h"
#include "image_names.h"
#include "module_files.h"

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
                        const std::string& debug_directory) {
  if (module.kind == ModuleKind::kVdso) return ReadVdsoNames(module, files);
  struct Image {
    std::unique_ptr<FileSource> source;
    ElfFile file;
  };
  std::vector<Image> images;
  for (const std::string& path : PathsOf(module, debug_directory)) {
    std::unique_ptr<FileSource> source = files.Open(path);
    if (source == nullptr) continue;
    std::optional<ElfFile> file = OpenFor(module, *source);
    if (!file.has_value()) continue;
    images.push_back({std::move(source), *std::move(file)});
    if (images.back().file.symbols() == ElfFile::Symbols::kFull) break;
  }
  ImageNames names;
  names.has_image = !images.empty();
  const auto best = std::max_element(
      images.begin(), images.end(),
      [](const Image& a, const Image& b) { return a.file.symbols() < b.file.symbols(); });
  if (best != images.end()) names.functions = best->file.ReadFunctions();
  for (const Image& image : images) {
    if (names.stubs.empty()) names.stubs = image.file.ReadLinkageStubs(names.functions);
  }
  names.is_final = !names.empty();  // else the file may be there the next time
  return names;
}

}  // namespace strobe::internal
