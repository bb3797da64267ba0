#include "dwarf_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxHeaderBytes = 40;
constexpr std::uint8_t kAddressBytes = 8;
// Where the lists begin in a section of split units, which have no attribute for that: after the
// section's header.
std::uint64_t DefaultBase(UnitShape shape, std::uint64_t header_bytes) {
  return shape.is_64 ? header_bytes + 12 : header_bytes + 4;
}

bool IsStringIndex(DwarfForm form) {
  return form == DwarfForm::kStringIndex || form == DwarfForm::kGnuStringIndex ||
         (form >= DwarfForm::kStringIndex1 && form <= DwarfForm::kStringIndex4);
}

bool IsAddressIndex(DwarfForm form) {
  return form == DwarfForm::kAddressIndex || form == DwarfForm::kGnuAddressIndex ||
         (form >= DwarfForm::kAddressIndex1 && form <= DwarfForm::kAddressIndex4);
}

}  // namespace

DwarfFile::DwarfFile(const SectionFinder& find, const std::string& suffix) {
  const auto section = [&](const char* name) { return find(absl::StrCat(name, suffix)); };
  info = section(".debug_info");
  abbreviations = section(".debug_abbrev");
  lines = section(".debug_line");
  strings = section(".debug_str");
  line_strings = section(".debug_line_str");
  string_offsets = section(".debug_str_offsets");
  addresses = section(".debug_addr");
  ranges = section(".debug_ranges");
  range_lists = section(".debug_rnglists");
}

const std::vector<std::uint64_t>& DwarfFile::UnitPositions() {
  if (unit_positions_.has_value()) return *unit_positions_;
  std::vector<std::uint64_t> positions;
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t position = 0; position < info.size() && positions.size() < kMaxUnits;) {
    const std::uint64_t rest = info.size() - position;
    if (!info.Read(position, std::min<std::uint64_t>(rest, kMaxHeaderBytes), bytes)) break;
    DwarfReader reader(bytes, 0);
    bool is_64 = false;
    const std::uint64_t length = ReadLength(reader, is_64);
    if (!reader.ok() || length > rest - reader.position()) break;
    positions.push_back(position);
    position += reader.position() + length;
  }
  unit_positions_ = std::move(positions);
  return *unit_positions_;
}

std::optional<UnitHeader> DwarfFile::HeaderAt(std::uint64_t position) const {
  if (position >= info.size()) return std::nullopt;
  const std::uint64_t rest = info.size() - position;
  std::vector<std::uint8_t> bytes;
  if (!info.Read(position, std::min<std::uint64_t>(rest, kMaxHeaderBytes), bytes))
    return std::nullopt;
  DwarfReader reader(bytes, 0);
  UnitHeader header;
  header.position = position;
  const std::uint64_t length = ReadLength(reader, header.shape.is_64);
  if (!reader.ok() || length > rest - reader.position()) return std::nullopt;
  header.end = position + reader.position() + length;
  header.shape.version = reader.Read<std::uint16_t>();
  if (!header.shape.is_known()) return std::nullopt;
  std::uint8_t address_bytes = 0;
  if (header.shape.version >= 5) {
    header.type = static_cast<DwarfUnitType>(reader.Read<std::uint8_t>());
    address_bytes = reader.Read<std::uint8_t>();
    header.abbreviations = ReadOffset(reader, header.shape.is_64);
    switch (header.type) {
      case DwarfUnitType::kSkeleton:
      case DwarfUnitType::kSplitCompile: header.dwo_id = reader.Read<std::uint64_t>(); break;
      case DwarfUnitType::kType:
      case DwarfUnitType::kSplitType:
        reader.Skip(sizeof(std::uint64_t) + header.shape.offset_bytes());
        break;
      default: break;
    }
  } else {
    header.abbreviations = ReadOffset(reader, header.shape.is_64);
    address_bytes = reader.Read<std::uint8_t>();
  }
  header.root = position + reader.position();
  if (!reader.ok() || address_bytes != kAddressBytes || header.root > header.end)
    return std::nullopt;
  return header;
}

std::shared_ptr<const AbbreviationTable> DwarfFile::AbbreviationsOf(const UnitHeader& header) {
  // The units of a file that dwz has made share tables.
  for (const auto& [position, unit] : units_) {
    if (unit->header.abbreviations == header.abbreviations && unit->header.shape == header.shape)
      return unit->abbreviations;
  }
  std::optional<AbbreviationTable> table =
      AbbreviationTable::Read(abbreviations, header.abbreviations, header.shape);
  if (!table.has_value()) return nullptr;
  return std::make_shared<const AbbreviationTable>(*std::move(table));
}

std::shared_ptr<const DwarfUnit> DwarfFile::UnitAt(std::uint64_t position) {
  if (const auto found = units_.find(position); found != units_.end()) return found->second;
  const std::optional<UnitHeader> header = HeaderAt(position);
  if (!header.has_value()) return nullptr;
  auto unit = std::make_shared<DwarfUnit>();
  unit->header = *header;
  unit->abbreviations = AbbreviationsOf(*header);
  if (unit->abbreviations == nullptr) return nullptr;
  ReadRoot(*unit);
  if (units_.size() >= kMaxKeptUnits) units_.clear();
  units_[position] = unit;
  return unit;
}

std::shared_ptr<const DwarfUnit> DwarfFile::UnitOf(std::uint64_t position) {
  const std::vector<std::uint64_t>& positions = UnitPositions();
  const auto after = std::upper_bound(positions.begin(), positions.end(), position);
  if (after == positions.begin()) return nullptr;
  std::shared_ptr<const DwarfUnit> unit = UnitAt(*(after - 1));
  if (unit == nullptr || position < unit->header.root || position >= unit->header.end)
    return nullptr;
  return unit;
}

void DwarfFile::ReadRoot(DwarfUnit& unit) {
  constexpr std::uint64_t kUsualBytes = 1024;
  const UnitHeader& header = unit.header;
  const std::uint64_t rest = header.end - header.root;
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t size : {kUsualBytes, std::uint64_t{2 * SectionBytes::kMaxAtOnce}}) {
    if (!info.Read(header.root, std::min(rest, size), bytes)) return;
    if (ReadRootAttributes(unit, bytes)) return;
  }
}

bool DwarfFile::ReadRootAttributes(DwarfUnit& unit, std::span<const std::uint8_t> bytes) {
  DwarfReader reader(bytes, 0);
  const Abbreviation* const entry = unit.abbreviations->Find(reader.ReadUleb());
  if (entry == nullptr) return true;
  FormValue name, directory, dwo_name;
  for (const AbbreviationTable::Attribute& attribute : unit.abbreviations->AttributesOf(*entry)) {
    const FormValue value = ReadForm(reader, attribute.form, attribute.constant, unit.header.shape);
    switch (attribute.name) {
      case DwarfAttribute::kLowPc: unit.low_pc = value; break;
      case DwarfAttribute::kHighPc: unit.high_pc = value; break;
      case DwarfAttribute::kRanges: unit.ranges = value; break;
      case DwarfAttribute::kStatementList: unit.line_table = value; break;
      case DwarfAttribute::kName: name = value; break;
      case DwarfAttribute::kCompilationDirectory: directory = value; break;
      case DwarfAttribute::kDwoName:
      case DwarfAttribute::kGnuDwoName: dwo_name = value; break;
      case DwarfAttribute::kGnuDwoId: unit.header.dwo_id = value.number; break;
      case DwarfAttribute::kStringOffsetsBase: unit.string_offsets_base = value.number; break;
      case DwarfAttribute::kAddressBase:
      case DwarfAttribute::kGnuAddressBase: unit.address_base = value.number; break;
      case DwarfAttribute::kRangeListsBase: unit.range_lists_base = value.number; break;
      case DwarfAttribute::kGnuRangesBase: unit.ranges_base = value.number; break;
      default: break;
    }
  }
  if (!reader.ok()) return false;
  if (unit.header.shape.version >= 5) {
    const UnitShape shape = unit.header.shape;
    if (unit.string_offsets_base == 0) unit.string_offsets_base = DefaultBase(shape, 4);
    if (unit.range_lists_base == 0) unit.range_lists_base = DefaultBase(shape, 8);
  }
  unit.name = TextOf(unit, name, bytes);
  unit.directory = TextOf(unit, directory, bytes);
  unit.dwo_name = TextOf(unit, dwo_name, bytes);
  return true;
}

std::string_view DwarfFile::TextOf(const DwarfUnit& unit, const FormValue& value,
                                   std::span<const std::uint8_t> bytes) {
  if (!value.is_present) return {};
  switch (value.form) {
    case DwarfForm::kString: {
      if (value.number >= bytes.size()) return {};
      const auto* text = reinterpret_cast<const char*>(bytes.data() + value.number);
      const std::size_t rest = bytes.size() - static_cast<std::size_t>(value.number);
      return {text, strnlen(text, std::min(rest, SectionBytes::kMaxAtOnce))};
    }
    case DwarfForm::kStringOffset: return strings.TextAt(value.number);
    case DwarfForm::kLineString: return line_strings.TextAt(value.number);
    case DwarfForm::kStringSupplement:
    case DwarfForm::kGnuStringAlternative:
      return supplement == nullptr ? std::string_view() : supplement->strings.TextAt(value.number);
    default: break;
  }
  const std::size_t entry_bytes = unit.header.shape.offset_bytes();
  if (!IsStringIndex(value.form) || value.number >= string_offsets.size() / entry_bytes) return {};
  DwarfReader reader(string_offsets.At(unit.string_offsets_base + value.number * entry_bytes), 0);
  const std::uint64_t position = ReadOffset(reader, unit.header.shape.is_64);
  return reader.ok() ? strings.TextAt(position) : std::string_view();
}

std::optional<std::uint64_t> DwarfFile::AddressOf(const DwarfUnit& unit, const FormValue& value) {
  if (!value.is_present) return std::nullopt;
  if (value.form == DwarfForm::kAddress) return value.number;
  SectionBytes& table = main == nullptr ? addresses : main->addresses;
  if (!IsAddressIndex(value.form) || value.number >= table.size() / kAddressBytes)
    return std::nullopt;
  DwarfReader reader(table.At(unit.address_base + value.number * kAddressBytes), 0);
  const auto address = reader.Read<std::uint64_t>();
  return reader.ok() ? std::optional(address) : std::nullopt;
}

EntryPlace DwarfFile::ReferenceOf(const DwarfUnit& unit, const FormValue& value) {
  if (!value.is_present) return {};
  switch (value.form) {
    case DwarfForm::kReference1:
    case DwarfForm::kReference2:
    case DwarfForm::kReference4:
    case DwarfForm::kReference8:
    case DwarfForm::kReferenceUnsigned: return {this, unit.header.position + value.number};
    case DwarfForm::kReferenceAddress: return {this, value.number};
    case DwarfForm::kReferenceSupplement4:
    case DwarfForm::kReferenceSupplement8:
    case DwarfForm::kGnuReferenceAlternative: return {supplement, value.number};
    default: return {};
  }
}

}  // namespace strobe::internal
