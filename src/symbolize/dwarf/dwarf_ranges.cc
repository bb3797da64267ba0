// The ranges of code of an entry: DWARF 5, sections 2.17 and 7.25; DWARF 4, section 2.17.3.
#include <limits>
#include <optional>

#include "dwarf_file.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxEntryBytes = 32;
using Visit = std::function<void(std::uint64_t begin, std::uint64_t end)>;

// A list in a section, read a window at a time.
class ListReader {
 public:
  ListReader(SectionBytes& section, std::uint64_t position)
      : section_(&section), position_(position) {}

  // A reader with at least one entry, unless the section ends before.
  DwarfReader& Next() {
    if (reader_.remaining() < kMaxEntryBytes) {
      position_ += reader_.position();
      reader_ = DwarfReader(section_->At(position_), 0);
    }
    return reader_;
  }

 private:
  SectionBytes* section_;
  std::uint64_t position_;
  DwarfReader reader_;
};

bool VisitOldList(SectionBytes& section, std::uint64_t position, std::uint64_t base,
                  const Visit& visit) {
  constexpr std::uint64_t kIsBase = std::numeric_limits<std::uint64_t>::max();
  ListReader list(section, position);
  for (std::size_t i = 0; i < kMaxRanges; ++i) {
    DwarfReader& reader = list.Next();
    const auto begin = reader.Read<std::uint64_t>();
    const auto end = reader.Read<std::uint64_t>();
    if (!reader.ok()) return false;
    if (begin == 0 && end == 0) return true;
    if (begin == kIsBase) {
      base = end;
    } else {
      visit(base + begin, base + end);
    }
  }
  return false;
}

bool VisitList(DwarfFile& file, const DwarfUnit& unit, std::uint64_t position, std::uint64_t base,
               const Visit& visit) {
  const auto address = [&](std::uint64_t index) {
    const FormValue value{.form = DwarfForm::kAddressIndex, .is_present = true, .number = index};
    return file.AddressOf(unit, value).value_or(0);
  };
  ListReader list(file.range_lists, position);
  for (std::size_t i = 0; i < kMaxRanges; ++i) {
    DwarfReader& reader = list.Next();
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    const auto kind = static_cast<DwarfRangeEntry>(reader.Read<std::uint8_t>());
    if (!reader.ok()) return false;
    switch (kind) {
      case DwarfRangeEntry::kEnd: return true;
      case DwarfRangeEntry::kBaseAddressIndex: base = address(reader.ReadUleb()); continue;
      case DwarfRangeEntry::kBaseAddress: base = reader.Read<std::uint64_t>(); continue;
      case DwarfRangeEntry::kStartIndexEndIndex:
        begin = address(reader.ReadUleb());
        end = address(reader.ReadUleb());
        break;
      case DwarfRangeEntry::kStartIndexLength:
        begin = address(reader.ReadUleb());
        end = begin + reader.ReadUleb();
        break;
      case DwarfRangeEntry::kOffsetPair:
        begin = base + reader.ReadUleb();
        end = base + reader.ReadUleb();
        break;
      case DwarfRangeEntry::kStartEnd:
        begin = reader.Read<std::uint64_t>();
        end = reader.Read<std::uint64_t>();
        break;
      case DwarfRangeEntry::kStartLength:
        begin = reader.Read<std::uint64_t>();
        end = begin + reader.ReadUleb();
        break;
      default: return false;
    }
    if (!reader.ok()) return false;
    visit(begin, end);
  }
  return false;
}

// Where a list of .debug_rnglists begins.
std::optional<std::uint64_t> ListPosition(DwarfFile& file, const DwarfUnit& unit,
                                          const FormValue& ranges) {
  if (ranges.form != DwarfForm::kRangeListIndex) return ranges.number;
  const std::size_t entry_bytes = unit.header.shape.offset_bytes();
  if (ranges.number >= file.range_lists.size() / entry_bytes) return std::nullopt;
  DwarfReader reader(file.range_lists.At(unit.range_lists_base + ranges.number * entry_bytes), 0);
  const std::uint64_t offset = ReadOffset(reader, unit.header.shape.is_64);
  return reader.ok() ? std::optional(unit.range_lists_base + offset) : std::nullopt;
}

}  // namespace

bool VisitRanges(DwarfFile& file, const DwarfUnit& unit, const FormValue& low_pc,
                 const FormValue& high_pc, const FormValue& ranges, const Visit& visit) {
  // A linker writes 0, or a number beyond all code, for code that it has left out.
  const auto visit_code = [&](std::uint64_t begin, std::uint64_t end) {
    if (begin != 0 && begin < end) visit(begin, end);
  };
  if (ranges.is_present) {
    const std::uint64_t base = file.AddressOf(unit, unit.low_pc).value_or(0);
    if (unit.header.shape.version < 5) {
      // The base is that of the entries in a split unit, not of its skeleton.
      if (file.main == nullptr) return VisitOldList(file.ranges, ranges.number, base, visit_code);
      return VisitOldList(file.main->ranges, unit.ranges_base + ranges.number, base, visit_code);
    }
    const std::optional<std::uint64_t> position = ListPosition(file, unit, ranges);
    return position.has_value() && VisitList(file, unit, *position, base, visit_code);
  }
  const std::optional<std::uint64_t> begin = file.AddressOf(unit, low_pc);
  if (!begin.has_value() || !high_pc.is_present) return true;
  // Other forms than an address count from the beginning.
  const std::optional<std::uint64_t> end = file.AddressOf(unit, high_pc);
  visit_code(*begin, end.has_value() ? *end : *begin + high_pc.number);
  return true;
}

}  // namespace strobe::internal
