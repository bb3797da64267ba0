#include "module_lines.h"

#include <algorithm>
#include <utility>

#include "../dwarf/dwarf_source.h"
#include "../pe/pe_images.h"
#include "debug_image.h"

namespace strobe::internal {

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
