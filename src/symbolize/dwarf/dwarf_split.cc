#include "dwarf_split.h"

#include <array>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "unwind/dwarf_reader.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxIndexBytes = std::size_t{64} << 20;

struct PackagePart {
  std::uint32_t offset = 0;
  std::uint32_t bytes = 0;
};

// What a column of the index is about. Versions 2 (GCC's before DWARF 5) and 5 differ in those that
// are not used here.
std::string SectionOfColumn(std::uint32_t column, std::uint32_t version) {
  switch (column) {
    case 1: return ".debug_info.dwo";
    case 3: return ".debug_abbrev.dwo";
    case 4: return ".debug_line.dwo";
    case 6: return ".debug_str_offsets.dwo";
    case 8: return version == 5 ? ".debug_rnglists.dwo" : "";
    default: return "";
  }
}

// The parts of a package's sections that belong to a unit, from the section .debug_cu_index.
std::map<std::string, PackagePart> PartsOf(std::span<const std::uint8_t> index,
                                           std::uint64_t dwo_id) {
  DwarfReader reader(index, 0);
  const std::uint32_t version = reader.Read<std::uint32_t>() & 0xFFFF;
  const auto columns = reader.Read<std::uint32_t>();
  const auto units = reader.Read<std::uint32_t>();
  const auto slots = reader.Read<std::uint32_t>();
  const std::size_t ids = reader.position();
  std::map<std::string, PackagePart> parts;
  if (columns > index.size() || units > index.size() || slots > index.size()) return parts;
  const std::size_t rows = ids + std::size_t{slots} * 8;
  const std::size_t names = rows + std::size_t{slots} * 4;
  const std::size_t offsets = names + std::size_t{columns} * 4;
  const std::size_t sizes = offsets + std::size_t{columns} * units * 4;
  const auto number = [&](std::size_t position) {
    reader.Seek(position);
    return reader.Read<std::uint32_t>();
  };
  std::uint32_t row = 0;  // counted from 1
  for (std::uint32_t slot = 0; slot < slots && row == 0 && reader.ok(); ++slot) {
    reader.Seek(ids + std::size_t{slot} * 8);
    if (reader.Read<std::uint64_t>() == dwo_id) row = number(rows + std::size_t{slot} * 4);
  }
  if (row == 0 || row > units) return parts;
  for (std::uint32_t column = 0; column < columns && reader.ok(); ++column) {
    const std::string name = SectionOfColumn(number(names + std::size_t{column} * 4), version);
    const std::size_t at = (std::size_t{row - 1} * columns + column) * 4;
    if (!name.empty()) parts[name] = {number(offsets + at), number(sizes + at)};
  }
  return parts;
}

}  // namespace

std::optional<SplitUnits::Split> SplitUnits::Open(DwarfFile& main, const DwarfUnit& skeleton) {
  if (const auto find = InPackage(skeleton.header.dwo_id)) {
    if (auto split = OpenIn(*find, main, skeleton)) return split;
  }
  const bool is_absolute = absl::StartsWith(skeleton.dwo_name, "/");
  const auto find = open_(is_absolute ? skeleton.dwo_name
                                      : absl::StrCat(skeleton.directory, "/", skeleton.dwo_name));
  return find.has_value() ? OpenIn(*find, main, skeleton) : std::nullopt;
}

std::optional<SplitUnits::Split> SplitUnits::OpenIn(const DwarfFile::SectionFinder& find,
                                                    DwarfFile& main, const DwarfUnit& skeleton) {
  Split split;
  split.file = std::make_unique<DwarfFile>(find, ".dwo");
  split.file->main = &main;
  for (const std::uint64_t position : split.file->UnitPositions()) {
    const std::shared_ptr<const DwarfUnit> unit = split.file->UnitAt(position);
    if (unit == nullptr || unit->header.dwo_id != skeleton.header.dwo_id) continue;
    auto completed = std::make_shared<DwarfUnit>(*unit);
    completed->low_pc = skeleton.low_pc;
    completed->address_base = skeleton.address_base;
    completed->ranges_base = skeleton.ranges_base;
    split.unit = std::move(completed);
    return split;
  }
  return std::nullopt;
}

std::optional<DwarfFile::SectionFinder> SplitUnits::InPackage(std::uint64_t dwo_id) {
  if (!std::exchange(has_opened_package_, true)) package_ = open_(package_path_);
  if (!package_.has_value()) return std::nullopt;
  const SectionBytes index = (*package_)(".debug_cu_index");
  std::vector<std::uint8_t> bytes;
  if (index.size() > kMaxIndexBytes || !index.Read(0, index.size(), bytes)) return std::nullopt;
  const std::map<std::string, PackagePart> parts = PartsOf(bytes, dwo_id);
  if (parts.empty()) return std::nullopt;
  return [find = *package_, parts](const std::string& name) {
    const SectionBytes section = find(name);
    const auto part = parts.find(name);
    // Texts are shared by all units.
    return part == parts.end() ? section : section.Sub(part->second.offset, part->second.bytes);
  };
}

}  // namespace strobe::internal
