#include "module_lines.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "../dwarf/dwarf_file.h"
#include "../dwarf/dwarf_source.h"
#include "../elf/elf_images.h"
#include "../pe/pe_images.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

struct DebugImage {
  std::string identity;
  // What the debug information adds to an address that counts from the image's load bias.
  std::uint64_t base = 0;
  DwarfSource::Files files;
};

template <class Image>
DwarfFile::SectionFinder FinderIn(Image image) {
  return [image = std::make_shared<const Image>(std::move(image))](const std::string& name) {
    return OpenSection(*image, name);
  };
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
    supplement = std::make_unique<DwarfFile>(FinderIn(std::move(found)), "");
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
    auto main = std::make_unique<DwarfFile>(FinderIn(std::move(image)), "");
    if (!main->has_units()) return true;
    SplitUnits split(
        [&files](const std::string& path) -> std::optional<DwarfFile::SectionFinder> {
          std::optional<ElfImage> opened = OpenElfImage(path, files);
          if (!opened.has_value()) return std::nullopt;
          return FinderIn(*std::move(opened));
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
  auto main = std::make_unique<DwarfFile>(FinderIn(*std::move(found.image)), "");
  if (!main->has_units()) return std::nullopt;
  SplitUnits none([](const std::string&) { return std::nullopt; }, "");
  return DebugImage{identity, base, {std::move(main), nullptr, std::move(none)}};
}

std::optional<DebugImage> OpenDebugImage(const Module& module, const SymbolFiles& files,
                                         const SymbolSearch& search) {
  return module.format == ImageFormat::kPe ? OpenPeDebugImage(module, files, search)
                                           : OpenElfDebugImage(module, files, search);
}

}  // namespace

bool ModuleLines::LookUp(const Module& module, std::span<const std::uint64_t> addresses,
                         const SymbolFiles& files, const ImageSymbolizerOptions& options,
                         const std::function<bool()>& is_late) {
  std::vector<std::uint64_t> unknown;
  std::copy_if(addresses.begin(), addresses.end(), std::back_inserter(unknown),
               [&](std::uint64_t address) { return !places_.contains(address); });
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  if (unknown.empty()) return true;
  std::optional<DebugImage> image = OpenDebugImage(module, files, options.search);
  if (!image.has_value()) {
    return module.format == ImageFormat::kPe && options.use_system_library &&
           LookUpInSystem(module, unknown, files, options.search, is_late);
  }
  BeginFile(image->identity);
  for (std::uint64_t& address : unknown) address += image->base;
  DwarfSource source(std::move(image->files), index_, options.cache_bytes);
  return source.Find(unknown, is_late,
                     [&](std::uint64_t address, std::span<const SourceFrame> frames) {
                       Add(address - image->base, frames);
                     });
}

bool ModuleLines::LookUpInSystem(const Module& module, std::span<const std::uint64_t> addresses,
                                 const SymbolFiles& files, const SymbolSearch& search,
                                 const std::function<bool()>& is_late) {
  const PeImageSearch found = FindPeImage(module, files, search);
  if (!found.image.has_value()) return false;
  BeginFile(found.image->source->identity());
  std::size_t done = 0;
  found.image->file.VisitDebugLines(
      found.image->path, files, addresses,
      [&](std::uint64_t address, std::span<const SourceFrame> frames) {
        Add(address, frames);
        ++done;
        return !is_late();
      });
  return done == addresses.size();
}

void ModuleLines::BeginFile(const std::string& identity) {
  if (identity == identity_) return;
  *this = {};
  identity_ = identity;
}

void ModuleLines::Add(std::uint64_t address, std::span<const SourceFrame> frames) {
  const Place place{.begin = static_cast<std::uint32_t>(lines_.size()),
                    .count = static_cast<std::uint32_t>(frames.size())};
  for (const SourceFrame& frame : frames) {
    lines_.push_back({.function = NumberOf(frame.function),
                      .file = NumberOf(frame.file),
                      .line = frame.line,
                      .column = frame.column,
                      .function_line = frame.function_line});
  }
  places_[address] = place;
}

std::uint32_t ModuleLines::NumberOf(const std::string& text) {
  const auto [place, is_new] =
      numbers_.try_emplace(text, static_cast<std::uint32_t>(texts_.size()));
  if (is_new) {
    texts_.push_back(&place->first);
    text_bytes_ += text.capacity();
  }
  return place->second;
}

std::span<const ModuleLines::Line> ModuleLines::Find(std::uint64_t address) const {
  const auto found = places_.find(address);
  if (found == places_.end()) return {};
  return std::span(lines_).subspan(found->second.begin, found->second.count);
}

std::size_t ModuleLines::memory_bytes() const {
  constexpr std::size_t kNodeBytes = 3 * sizeof(void*);  // of a map's entry
  return sizeof(*this) + index_.memory_bytes() + lines_.capacity() * sizeof(Line) +
         places_.size() * (sizeof(Place) + sizeof(std::uint64_t) + kNodeBytes) +
         texts_.size() * (sizeof(std::string) + 2 * sizeof(void*) + kNodeBytes) + text_bytes_;
}

}  // namespace strobe::internal
