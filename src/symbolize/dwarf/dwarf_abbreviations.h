// AbbreviationTable: the shapes of a unit's entries (DWARF 5, section 7.5.3).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "../images/section_bytes.h"
#include "dwarf_constants.h"
#include "dwarf_forms.h"
#include "unwind/dwarf_reader.h"

namespace strobe::internal {

// The shape of an entry: its tag and its attributes.
struct Abbreviation {
  std::uint64_t code = 0;
  DwarfTag tag{};
  bool has_children = false;
  std::uint32_t first_attribute = 0;
  std::uint32_t attribute_count = 0;
  std::uint32_t first_step = 0;
};

class AbbreviationTable {
 public:
  struct Attribute {
    DwarfAttribute name{};
    DwarfForm form{};
    std::int64_t constant = 0;  // for kImplicitConstant
  };

  // A larger table is not read.
  static constexpr std::size_t kMaxBytes = std::size_t{16} << 20;

  // The table at `position` of .debug_abbrev, for units of one shape. Empty if it is broken.
  static std::optional<AbbreviationTable> Read(SectionBytes& section, std::uint64_t position,
                                               UnitShape shape);

  // nullptr if there is no such code.
  [[nodiscard]] const Abbreviation* Find(std::uint64_t code) const {
    if (code - 1 < entries_.size() && entries_[code - 1].code == code) return &entries_[code - 1];
    return FindSlowly(code);
  }

  [[nodiscard]] std::span<const Attribute> AttributesOf(const Abbreviation& entry) const {
    return std::span(attributes_).subspan(entry.first_attribute, entry.attribute_count);
  }

  // Skips an entry's attributes. Returns the value of DW_AT_sibling, or 0.
  std::uint64_t Skip(DwarfReader& reader, const Abbreviation& entry) const;

 private:
  // How to skip attributes: so many bytes, and then a value that varies, or is the sibling.
  struct Step {
    std::uint32_t bytes = 0;
    DwarfForm form{};
    bool is_sibling = false;
    bool is_last = false;  // `form` has no meaning
  };

  explicit AbbreviationTable(UnitShape shape) : shape_(shape) {}
  bool Parse(DwarfReader reader);
  void AddSteps(const Abbreviation& entry);
  [[nodiscard]] const Abbreviation* FindSlowly(std::uint64_t code) const;

  UnitShape shape_;
  std::vector<Abbreviation> entries_;  // by code
  std::vector<Attribute> attributes_;
  std::vector<Step> steps_;
};

}  // namespace strobe::internal
