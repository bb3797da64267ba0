#include "dwarf_abbreviations.h"

#include <algorithm>
#include <limits>

namespace strobe::internal {
namespace {

constexpr std::uint64_t kMaxNumber = std::numeric_limits<std::uint16_t>::max();

}  // namespace

std::optional<AbbreviationTable> AbbreviationTable::Read(SectionBytes& section,
                                                         std::uint64_t position, UnitShape shape) {
  if (position >= section.size()) return std::nullopt;
  AbbreviationTable table(shape);
  // The section does not tell how long a table is.
  if (table.Parse(DwarfReader(section.At(position), 0))) return table;
  const std::uint64_t rest = section.size() - position;
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t size = 8 * SectionBytes::kMaxAtOnce; size <= kMaxBytes; size *= 8) {
    if (!section.Read(position, std::min(size, rest), bytes)) return std::nullopt;
    table = AbbreviationTable(shape);
    if (table.Parse(DwarfReader(bytes, 0))) return table;
    if (size >= rest) break;
  }
  return std::nullopt;
}

bool AbbreviationTable::Parse(DwarfReader reader) {
  bool is_sorted = true;
  while (true) {
    Abbreviation entry;
    entry.code = reader.ReadUleb();
    if (entry.code == 0) break;
    const std::uint64_t tag = reader.ReadUleb();
    entry.tag = static_cast<DwarfTag>(std::min(tag, kMaxNumber));
    entry.has_children = reader.Read<std::uint8_t>() != 0;
    entry.first_attribute = static_cast<std::uint32_t>(attributes_.size());
    while (true) {
      const std::uint64_t name = reader.ReadUleb();
      const std::uint64_t form = reader.ReadUleb();
      if ((name == 0 && form == 0) || !reader.ok()) break;
      Attribute attribute{.name = static_cast<DwarfAttribute>(std::min(name, kMaxNumber)),
                          .form = static_cast<DwarfForm>(std::min(form, kMaxNumber))};
      if (attribute.form == DwarfForm::kImplicitConstant) attribute.constant = reader.ReadSleb();
      attributes_.push_back(attribute);
    }
    if (!reader.ok()) return false;
    entry.attribute_count = static_cast<std::uint32_t>(attributes_.size()) - entry.first_attribute;
    entry.first_step = static_cast<std::uint32_t>(steps_.size());
    AddSteps(entry);
    is_sorted &= entries_.empty() || entries_.back().code < entry.code;
    entries_.push_back(entry);
  }
  if (!is_sorted) {
    std::stable_sort(entries_.begin(), entries_.end(),
                     [](const auto& a, const auto& b) { return a.code < b.code; });
  }
  return reader.ok();
}

void AbbreviationTable::AddSteps(const Abbreviation& entry) {
  Step step;
  for (const Attribute& attribute : AttributesOf(entry)) {
    const std::optional<std::uint32_t> bytes = FixedBytes(attribute.form, shape_);
    step.form = attribute.form;
    step.is_sibling = attribute.name == DwarfAttribute::kSibling;
    if (bytes.has_value() && !step.is_sibling) {
      step.bytes += *bytes;
    } else {
      steps_.push_back(step);
      step = {};
    }
  }
  step.is_last = true;
  steps_.push_back(step);
}

const Abbreviation* AbbreviationTable::FindSlowly(std::uint64_t code) const {
  const auto found =
      std::lower_bound(entries_.begin(), entries_.end(), code,
                       [](const Abbreviation& entry, std::uint64_t c) { return entry.code < c; });
  return found != entries_.end() && found->code == code ? &*found : nullptr;
}

std::uint64_t AbbreviationTable::Skip(DwarfReader& reader, const Abbreviation& entry) const {
  std::uint64_t sibling = 0;
  for (const Step* step = &steps_[entry.first_step];; ++step) {
    reader.Skip(step->bytes);
    if (step->is_last) return sibling;
    if (step->is_sibling) {
      sibling = ReadForm(reader, step->form, 0, shape_).number;
    } else {
      SkipVarying(reader, step->form, shape_);
    }
  }
}

}  // namespace strobe::internal
