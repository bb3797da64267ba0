#include "dwarf_source.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "dwarf_functions.h"
#include "dwarf_lines.h"
#include "unwind/dwarf_reader.h"

namespace strobe::internal {
namespace {

// How many entries are followed: an inlined function's refers to its abstract function's, and that
// to its declaration's. Hostile entries refer to each other.
constexpr int kMaxReferences = 8;

// What a function's declaration says.
struct FunctionName {
  std::string name;  // as in a symbol table; without one, as in the source code. May be empty.
  // Where it is declared. The line is 0 if it is unknown. The file is an index into the unit's own
  // line table; empty if another unit declares the function.
  std::optional<std::uint64_t> file;
  std::uint32_t line = 0;
};

// The names of the functions of one unit, which other entries may have.
class FunctionNames {
 public:
  // `bytes` are those of the unit from its header on. All must outlive this.
  FunctionNames(DwarfFile& file, const DwarfUnit& unit, std::span<const std::uint8_t> bytes)
      : file_(&file), unit_(&unit), bytes_(bytes) {}

  FunctionName Of(const FunctionEntry& function);

 private:
  // An entry that says something about functions that refer to it.
  struct Declaration {
    std::string name;
    std::string linkage_name;
    EntryPlace origin;
    std::optional<std::uint64_t> file;  // see FunctionName
    std::uint32_t line = 0;
  };

  const Declaration& At(const EntryPlace& place);
  Declaration Read(const EntryPlace& place);

  DwarfFile* file_;
  const DwarfUnit* unit_;
  std::span<const std::uint8_t> bytes_;
  std::map<EntryPlace, Declaration> declarations_;
};

FunctionName FunctionNames::Of(const FunctionEntry& function) {
  const auto text = [&](const FormValue& value) {
    return std::string(file_->TextOf(*unit_, value, bytes_));
  };
  FunctionName found{.name = text(function.name),
                     .file = function.declaration_file,
                     .line = function.declaration_line};
  std::string linkage_name = text(function.linkage_name);
  EntryPlace origin = function.origin;
  // A constructor's entry may have a linkage name, but no line.
  for (int i = 0;
       i < kMaxReferences && origin.file != nullptr && (linkage_name.empty() || found.line == 0);
       ++i) {
    const Declaration& declaration = At(origin);
    if (linkage_name.empty()) linkage_name = declaration.linkage_name;
    if (found.name.empty()) found.name = declaration.name;
    if (found.line == 0) {
      found.file = declaration.file;
      found.line = declaration.line;
    }
    origin = declaration.origin;
  }
  if (!linkage_name.empty()) found.name = std::move(linkage_name);
  return found;
}

const FunctionNames::Declaration& FunctionNames::At(const EntryPlace& place) {
  const auto [found, is_new] = declarations_.try_emplace(place);
  if (is_new) found->second = Read(place);
  return found->second;
}

FunctionNames::Declaration FunctionNames::Read(const EntryPlace& place) {
  DwarfFile& file = *place.file;
  const bool is_own =
      &file == file_ && place.position >= unit_->header.root && place.position < unit_->header.end;
  std::shared_ptr<const DwarfUnit> other;
  if (!is_own) {
    other = file.UnitOf(place.position);
    if (other == nullptr) return {};
  }
  const DwarfUnit& unit = is_own ? *unit_ : *other;
  const std::span<const std::uint8_t> bytes =
      is_own ? bytes_.subspan(static_cast<std::size_t>(place.position - unit.header.position))
             : file.info.At(place.position);
  DwarfReader reader(bytes, 0);
  const Abbreviation* const entry = unit.abbreviations->Find(reader.ReadUleb());
  if (entry == nullptr) return {};
  Declaration read;
  for (const AbbreviationTable::Attribute& attribute : unit.abbreviations->AttributesOf(*entry)) {
    const FormValue value = ReadForm(reader, attribute.form, attribute.constant, unit.header.shape);
    switch (attribute.name) {
      case DwarfAttribute::kName: read.name = file.TextOf(unit, value, bytes); break;
      case DwarfAttribute::kLinkageName:
      case DwarfAttribute::kMipsLinkageName:
        read.linkage_name = file.TextOf(unit, value, bytes);
        break;
      case DwarfAttribute::kAbstractOrigin:
      case DwarfAttribute::kSpecification: read.origin = file.ReferenceOf(unit, value); break;
      case DwarfAttribute::kDeclarationFile:
        if (is_own) read.file = value.number;
        break;
      case DwarfAttribute::kDeclarationLine:
        read.line = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(value.number, std::numeric_limits<std::uint32_t>::max()));
        break;
      default: break;
    }
  }
  return read;
}

// The frames of the addresses of one unit.
class UnitFrames {
 public:
  UnitFrames(DwarfFile& file, const DwarfUnit& unit, std::span<const std::uint8_t> bytes,
             std::optional<LineTable> lines)
      : names_(file, unit, bytes), lines_(std::move(lines)) {}

  // `function` is the innermost one.
  std::vector<SourceFrame> Of(const FunctionMap& functions, std::uint32_t function,
                              const LineRow& row) {
    std::vector<SourceFrame> frames;
    SourceFrame frame{.function = {},
                      .file = PathOf(row.file),
                      .line = row.line,
                      .column = row.column,
                      .discriminator = row.discriminator};
    if (!row.is_known) frame = {};
    for (std::size_t depth = 0; function != FunctionEntry::kNone && depth < kMaxFunctionDepth;
         ++depth) {
      const FunctionEntry& entry = functions.entries[function];
      const FunctionName& name = NameOf(functions, function);
      frame.function = name.name;
      frame.declaration_line = name.line;
      if (name.file.has_value() && PathOf(*name.file) == frame.file)
        frame.function_line = name.line;
      frames.push_back(std::move(frame));
      frame = {.function = {},
               .file = PathOf(entry.call_file),
               .line = entry.call_line,
               .column = entry.call_column,
               .discriminator = entry.call_discriminator};
      function = entry.caller;
    }
    if (frames.empty() && row.is_known) frames.push_back(std::move(frame));
    return frames;
  }

 private:
  const std::string& PathOf(std::uint64_t file) {
    const auto [place, is_new] = paths_.try_emplace(file);
    if (is_new && lines_.has_value()) place->second = lines_->PathOf(file);
    return place->second;
  }
  const FunctionName& NameOf(const FunctionMap& functions, std::uint32_t function) {
    const auto [place, is_new] = functions_.try_emplace(function);
    if (is_new) place->second = names_.Of(functions.entries[function]);
    return place->second;
  }

  FunctionNames names_;
  std::optional<LineTable> lines_;
  std::map<std::uint64_t, std::string> paths_;
  std::map<std::uint32_t, FunctionName> functions_;
};

}  // namespace

DwarfSource::DwarfSource(Files files, DwarfIndex& index, std::size_t max_unit_bytes)
    : files_(std::move(files)), index_(&index), max_unit_bytes_(max_unit_bytes) {
  files_.main->supplement = files_.supplement.get();
}

bool DwarfSource::Find(std::span<const std::uint64_t> addresses,
                       const std::function<bool()>& is_late, const Found& found) {
  if (!index_->is_complete()) {
    index_->Advance(*files_.main, is_late);
    if (!index_->is_complete()) return false;
  }
  std::map<std::uint64_t, std::vector<std::uint64_t>> addresses_of;  // by unit
  for (const std::uint64_t address : addresses) {
    if (const std::optional<std::uint64_t> unit = index_->Find(address)) {
      addresses_of[*unit].push_back(address);
    } else {
      found(address, {});
    }
  }
  std::vector<std::uint64_t> units;
  units.reserve(addresses_of.size());
  for (const auto& [unit, its_addresses] : addresses_of) units.push_back(unit);
  std::stable_sort(units.begin(), units.end(), [&](std::uint64_t a, std::uint64_t b) {
    return addresses_of[a].size() > addresses_of[b].size();
  });
  std::size_t done = 0;
  for (const std::uint64_t unit : units) {
    FindInUnit(unit, addresses_of[unit], found);
    ++done;
    if (is_late()) break;
  }
  return done == units.size();
}

void DwarfSource::FindInUnit(std::uint64_t position, std::span<const std::uint64_t> addresses,
                             const Found& found) {
  DwarfFile& main = *files_.main;
  const std::shared_ptr<const DwarfUnit> skeleton = main.UnitAt(position);
  if (skeleton == nullptr) {
    for (const std::uint64_t address : addresses) found(address, {});
    return;
  }
  std::optional<LineTable> lines = LineTable::Read(main, skeleton, max_unit_bytes_);
  const std::vector<LineRow> rows =
      lines.has_value() ? lines->Find(addresses) : std::vector<LineRow>(addresses.size());
  // Most units are not split, and have their own entries.
  std::optional<SplitUnits::Split> split;
  if (!skeleton->dwo_name.empty()) split = files_.split.Open(main, *skeleton);
  DwarfFile& file = split.has_value() ? *split->file : main;
  const DwarfUnit& unit = split.has_value() ? *split->unit : *skeleton;
  const std::uint64_t unit_bytes = unit.header.end - unit.header.position;
  std::vector<std::uint8_t> bytes;
  FunctionMap functions;
  if (unit_bytes <= max_unit_bytes_ && file.info.Read(unit.header.position, unit_bytes, bytes)) {
    functions = FindFunctions(file, unit, bytes, addresses);
  } else {
    functions.innermost.assign(addresses.size(), FunctionEntry::kNone);
  }
  UnitFrames frames(file, unit, bytes, std::move(lines));
  for (std::size_t i = 0; i < addresses.size(); ++i)
    found(addresses[i], frames.Of(functions, functions.innermost[i], rows[i]));
}

}  // namespace strobe::internal
