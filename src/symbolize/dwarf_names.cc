#include "dwarf_names.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "unwind/dwarf_reader.h"

namespace strobe::internal {
namespace {

// How many entries are followed: an inlined function's refers to its abstract function's, and that
// to its declaration's. Hostile entries refer to each other.
constexpr int kMaxReferences = 8;

}  // namespace

FunctionName FunctionNames::Of(const FunctionEntry& function) {
  const auto text = [&](const FormValue& value) {
    return std::string(file_->TextOf(*unit_, value, bytes_));
  };
  FunctionName found{.name = {},
                     .unit = unit_->header.position,
                     .file = function.declaration_file,
                     .line = function.declaration_line};
  std::string linkage_name = text(function.linkage_name);
  found.name = text(function.name);
  EntryPlace origin = function.origin;
  for (int i = 0; i < kMaxReferences && origin.file != nullptr && linkage_name.empty(); ++i) {
    const Declaration& declaration = At(origin);
    linkage_name = declaration.linkage_name;
    if (found.name.empty()) found.name = declaration.name;
    if (found.line == 0) {
      found.unit = declaration.place.unit;
      found.file = declaration.place.file;
      found.line = declaration.place.line;
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
  read.place.unit = unit.header.position;
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
      case DwarfAttribute::kDeclarationFile: read.place.file = value.number; break;
      case DwarfAttribute::kDeclarationLine:
        read.place.line = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(value.number, std::numeric_limits<std::uint32_t>::max()));
        break;
      default: break;
    }
  }
  return read;
}

}  // namespace strobe::internal
