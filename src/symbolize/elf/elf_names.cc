#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "../images/byte_source.h"
#include "../images/image_names.h"
#include "elf_file.h"
#include "elf_images.h"

namespace strobe::internal {
namespace {

ImageNames ReadVdsoNames(const Module& module, const SymbolFiles& files) {
  const SpanSource source(files.OwnVdso(module.load_bias, module.start, module.limit));
  const std::optional<ElfFile> file = OpenFor(module, source);
  return {.functions = file.has_value() ? file->ReadFunctions() : FunctionTable(),
          .more_functions = {},
          .stubs = {},
          .has_image = file.has_value(),
          .is_final = file.has_value()};
}

// The functions of the small ELF file that the section .gnu_debugdata holds, compressed by xz.
FunctionTable ReadMiniSymbols(const ElfFile& image, const SymbolFiles& files) {
  constexpr std::size_t kMaxCompressedBytes = std::size_t{16} << 20;
  constexpr std::size_t kMaxBytes = std::size_t{128} << 20;
  const std::vector<std::uint8_t> compressed =
      image.ReadSection(".gnu_debugdata", kMaxCompressedBytes);
  if (compressed.empty()) return {};
  const std::vector<std::byte> content =
      files.InflateXz(std::as_bytes(std::span(compressed)), kMaxBytes);
  const SpanSource source(content);
  const std::optional<ElfFile> file = ElfFile::Open(source);
  return file.has_value() ? file->ReadFunctions() : FunctionTable();
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
  const bool is_full = best != images.end() && best->file.symbols() == ElfFile::Symbols::kFull;
  for (const ElfImage& image : images) {
    if (!is_full && names.more_functions.empty())
      names.more_functions = ReadMiniSymbols(image.file, files);
    if (names.stubs.empty()) names.stubs = image.file.ReadLinkageStubs(names.functions);
  }
  names.is_final = !names.empty();  // else the file may be there the next time
  return names;
}

}  // namespace strobe::internal
