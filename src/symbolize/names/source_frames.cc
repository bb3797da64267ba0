#include "source_frames.h"

#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "../dwarf/dwarf_source.h"
#include "debug_image.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxSourceUnitBytes = std::size_t{1} << 30;

}  // namespace

bool FindSourceFrames(
    const Module& module, std::span<const std::uint64_t> addresses, const SymbolFiles& files,
    const SymbolSearch& search,
    const std::function<void(std::uint64_t address, std::span<const SourceFrame> frames)>& found) {
  std::optional<DebugImage> image = OpenDebugImage(module, files, search);
  if (!image.has_value()) return false;
  std::vector<std::uint64_t> in_file(addresses.begin(), addresses.end());
  for (std::uint64_t& address : in_file) address += image->base;
  DwarfIndex index;
  const auto found_in_file = [&](std::uint64_t address, std::span<const SourceFrame> frames) {
    found(address - image->base, frames);
  };
  return DwarfSource(std::move(image->files), index, kMaxSourceUnitBytes)
      .Find(
          in_file, [] { return false; }, found_in_file);
}

}  // namespace strobe::internal
