// DwarfBytes: the sections of hand-made debug information.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "../../src/symbolize/dwarf/dwarf_file.h"
#include "memory_files.h"
#include "support/bytes.h"

namespace strobe::testing {

// By their names. A section that is not there is empty.
struct DwarfBytes : std::map<std::string, Bytes> {
  // The sections as they are now.
  [[nodiscard]] strobe::internal::DwarfFile::SectionFinder Finder() const {
    auto sections = std::make_shared<const DwarfBytes>(*this);
    return [sections](const std::string& name) -> strobe::internal::SectionBytes {
      const auto found = sections->find(name);
      if (found == sections->end()) return {};
      return {std::make_shared<MemoryFile>(found->second), 0, found->second.size()};
    };
  }
};

// The shape of an entry, as .debug_abbrev has it.
inline Bytes Shape(
    std::uint64_t code, strobe::internal::DwarfTag tag, bool has_children,
    std::initializer_list<std::pair<strobe::internal::DwarfAttribute, strobe::internal::DwarfForm>>
        attributes) {
  Bytes bytes = Join({Uleb(code),
                      Uleb(static_cast<std::uint64_t>(tag)),
                      {static_cast<std::uint8_t>(has_children ? 1 : 0)}});
  for (const auto& [name, form] : attributes)
    bytes = Join(
        {bytes, Uleb(static_cast<std::uint64_t>(name)), Uleb(static_cast<std::uint64_t>(form))});
  return Join({bytes, {0, 0}});
}

// `content` behind its length.
inline Bytes Lengthened(const Bytes& content) {
  return Join({Fixed(static_cast<std::uint32_t>(content.size())), content});
}

// A unit of version 4 whose shapes are at `shapes` in .debug_abbrev.
inline Bytes Unit4(const Bytes& entries, std::uint32_t shapes = 0) {
  return Lengthened(Join({Fixed(std::uint16_t{4}), Fixed(shapes), {8}, entries}));
}
inline constexpr std::uint64_t kUnit4HeaderBytes = 11;

// A unit of version 5. `header` is what its type adds to the header.
inline Bytes Unit5(const Bytes& entries,
                   strobe::internal::DwarfUnitType type = strobe::internal::DwarfUnitType::kCompile,
                   const Bytes& header = {}, std::uint32_t shapes = 0) {
  return Lengthened(Join({Fixed(std::uint16_t{5}),
                          {static_cast<std::uint8_t>(type), 8},
                          Fixed(shapes),
                          header,
                          entries}));
}
inline constexpr std::uint64_t kUnit5HeaderBytes = 12;

}  // namespace strobe::testing
