// DwarfFile: the sections of a file's debug information, and its units.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../images/section_bytes.h"
#include "dwarf_abbreviations.h"
#include "dwarf_forms.h"

namespace strobe::internal {

// What the header of a unit says (DWARF 5, section 7.5.1). All positions are in .debug_info.
struct UnitHeader {
  std::uint64_t position = 0;
  std::uint64_t end = 0;
  std::uint64_t root = 0;  // the position of its first entry
  std::uint64_t abbreviations = 0;
  std::uint64_t dwo_id = 0;  // of a skeleton and of its split unit
  UnitShape shape;
  DwarfUnitType type = DwarfUnitType::kCompile;
};

// A unit without its entries: what is needed to understand each of them.
struct DwarfUnit {
  UnitHeader header;
  std::shared_ptr<const AbbreviationTable> abbreviations;

  // From the unit's first entry.
  FormValue low_pc;
  FormValue high_pc;
  FormValue ranges;
  FormValue line_table;
  std::uint64_t string_offsets_base = 0;
  std::uint64_t address_base = 0;
  std::uint64_t range_lists_base = 0;
  std::uint64_t ranges_base = 0;  // GCC's split units before DWARF 5
  std::string name;
  std::string directory;
  std::string dwo_name;  // the file that has the entries of a skeleton; empty for other units
};

// A place in .debug_info of a file.
class DwarfFile;
struct EntryPlace {
  DwarfFile* file = nullptr;
  std::uint64_t position = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): clang-tidy 14 sees a 0 in the compiler's own code
  friend auto operator<=>(const EntryPlace&, const EntryPlace&) = default;
};

class DwarfFile {
 public:
  static constexpr std::size_t kMaxUnits = std::size_t{1} << 20;

  // The section of that name, or an empty one.
  using SectionFinder = std::function<SectionBytes(const std::string& name)>;

  // The sections whose names end in `suffix`: "", or ".dwo" for split units.
  DwarfFile(const SectionFinder& find, const std::string& suffix);

  DwarfFile(const DwarfFile&) = delete;
  DwarfFile& operator=(const DwarfFile&) = delete;

  [[nodiscard]] bool has_units() const { return !info.empty(); }

  // Where the units begin, in order.
  const std::vector<std::uint64_t>& UnitPositions();

  // The header of the unit at `position`; empty if it is broken or of an unknown version.
  std::optional<UnitHeader> HeaderAt(std::uint64_t position) const;
  // The unit that begins at `position`; nullptr if it is broken.
  std::shared_ptr<const DwarfUnit> UnitAt(std::uint64_t position);
  // The unit that has an entry at `position`.
  std::shared_ptr<const DwarfUnit> UnitOf(std::uint64_t position);

  // `bytes` are the reader's that has read the value. Empty if there is no such text. Valid until
  // the next call.
  std::string_view TextOf(const DwarfUnit& unit, const FormValue& value,
                          std::span<const std::uint8_t> bytes);
  // Empty if the value is no address, or if its index leads nowhere.
  std::optional<std::uint64_t> AddressOf(const DwarfUnit& unit, const FormValue& value);
  // The entry that a value refers to; its file is nullptr if there is none.
  EntryPlace ReferenceOf(const DwarfUnit& unit, const FormValue& value);

  SectionBytes info, abbreviations, lines, strings, line_strings, string_offsets, addresses, ranges,
      range_lists;
  // The file that dwz has moved common entries and texts to; nullptr if there is none.
  DwarfFile* supplement = nullptr;
  // For a file of split units: the file with their addresses.
  DwarfFile* main = nullptr;

 private:
  static constexpr std::size_t kMaxKeptUnits = 64;

  void ReadRoot(DwarfUnit& unit);
  bool ReadRootAttributes(DwarfUnit& unit, std::span<const std::uint8_t> bytes);
  std::shared_ptr<const AbbreviationTable> AbbreviationsOf(const UnitHeader& header);

  std::optional<std::vector<std::uint64_t>> unit_positions_;
  std::map<std::uint64_t, std::shared_ptr<const DwarfUnit>> units_;
};

// Calls visit(begin, end) for each range of code that the three attributes give, in the unit's own
// order. False if they are broken, or if there are more than kMaxRanges.
inline constexpr std::size_t kMaxRanges = std::size_t{1} << 20;
bool VisitRanges(DwarfFile& file, const DwarfUnit& unit, const FormValue& low_pc,
                 const FormValue& high_pc, const FormValue& ranges,
                 const std::function<void(std::uint64_t begin, std::uint64_t end)>& visit);

}  // namespace strobe::internal
