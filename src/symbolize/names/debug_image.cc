#include "debug_image.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "../dwarf/dwarf_file.h"
#include "../elf/elf_images.h"
#include "../pe/pe_images.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

DwarfFile::SectionFinder FinderIn(ElfImage image, const SymbolFiles& files) {
  return [image = std::make_shared<const ElfImage>(std::move(image)),
          &files](const std::string& name) { return OpenSection(*image, name, files); };
}

// The file that dwz has moved common entries to: named, with its build id, by the section
// .gnu_debugaltlink.
std::unique_ptr<DwarfFile> OpenSupplement(const ElfImage& image, const SymbolFiles& files,
                                          const SymbolSearch& search) {
  constexpr std::size_t kMaxLinkBytes = 4096;
  const std::vector<std::uint8_t> link = image.file.ReadSection(".gnu_debugaltlink", kMaxLinkBytes);
  const auto name_end = std::find(link.begin(), link.end(), 0);
  if (name_end == link.end()) return nullptr;
  const std::string name(link.begin(), name_end);
  Module module;
  module.build_id = absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(&*name_end) + 1,
                        static_cast<std::size_t>(link.end() - name_end) - 1));
  module.path = absl::StartsWith(name, "/")
                    ? name
                    : absl::StrCat(image.path.substr(0, image.path.find_last_of('/') + 1), name);
  std::unique_ptr<DwarfFile> supplement;
  VisitElfImages(module, files, search, [&](ElfImage&& found) {
    supplement = std::make_unique<DwarfFile>(FinderIn(std::move(found), files), "");
    return false;
  });
  return supplement;
}

// The first ELF file of the module that has debug information.
std::optional<DebugImage> OpenElfDebugImage(const Module& module, const SymbolFiles& files,
                                            const SymbolSearch& search) {
  std::optional<DebugImage> found;
  VisitElfImages(module, files, search, [&](ElfImage&& image) {
    const std::string identity = image.source->identity();
    std::unique_ptr<DwarfFile> supplement = OpenSupplement(image, files, search);
    auto main = std::make_unique<DwarfFile>(FinderIn(std::move(image), files), "");
    if (!main->has_units()) return true;
    SplitUnits split(
        [&files](const std::string& path) -> std::optional<DwarfFile::SectionFinder> {
          std::optional<ElfImage> opened = OpenElfImage(path, files);
          if (!opened.has_value()) return std::nullopt;
          return FinderIn(*std::move(opened), files);
        },
        absl::StrCat(module.path, ".dwp"));
    found.emplace(
        DebugImage{identity, 0, {std::move(main), std::move(supplement), std::move(split)}});
    return false;
  });
  return found;
}

// What GCC and Clang write into a Windows image; its compilers know no split units.
std::optional<DebugImage> OpenPeDebugImage(const Module& module, const SymbolFiles& files,
                                           const SymbolSearch& search) {
  PeImageSearch found = FindPeImage(module, files, search);
  if (!found.image.has_value()) return std::nullopt;
  const std::string identity = found.image->source->identity();
  const std::uint64_t base = found.image->file.preferred_base();
  const auto find = [image = std::make_shared<const PeImageFile>(*std::move(found.image))](
                        const std::string& name) { return OpenSection(*image, name); };
  auto main = std::make_unique<DwarfFile>(find, "");
  if (!main->has_units()) return std::nullopt;
  SplitUnits none([](const std::string&) { return std::nullopt; }, "");
  return DebugImage{identity, base, {std::move(main), nullptr, std::move(none)}};
}

}  // namespace

std::optional<DebugImage> OpenDebugImage(const Module& module, const SymbolFiles& files,
                                         const SymbolSearch& search) {
  return module.format == ImageFormat::kPe ? OpenPeDebugImage(module, files, search)
                                           : OpenElfDebugImage(module, files, search);
}

}  // namespace strobe::internal
