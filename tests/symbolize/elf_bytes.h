// ElfBytes: the bytes of a small ELF file, of parts that a test gives.
#pragma once

#include <zlib.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "support/bytes.h"

namespace strobe::testing {

struct ElfBytes {
  static constexpr std::uint32_t kProgramBits = 1, kSymtab = 2, kStrtab = 3, kRelocations = 4,
                                 kNote = 7, kDynsym = 11;
  static constexpr std::uint64_t kLoaded = 2, kExecutable = 4, kCompressed = 0x800;
  static constexpr std::size_t kHeaderBytes = 64, kSegmentBytes = 56, kSectionBytes = 64;

  struct Section {
    std::string name{};
    std::uint32_t type = kProgramBits;
    std::uint64_t flags = 0;
    std::uint64_t address = 0;
    Bytes content{};
    std::uint32_t link = 0;
    std::uint64_t alignment = 1;
    std::uint64_t entry_bytes = 0;
  };
  struct Segment {
    std::uint32_t type = 1;  // loaded
    std::uint32_t flags = 5;
    std::uint64_t offset = 0;
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t alignment = 0x1000;
  };
  struct Symbol {
    std::string name;
    std::uint64_t value = 0;
    std::uint64_t bytes = 0;
    std::uint16_t section = 1;
    std::uint8_t info = 2;  // a function
  };

  std::uint16_t machine = 62;
  std::vector<Segment> segments;
  std::vector<Section> sections;  // the first has the index 1

  // Returns its index.
  std::uint32_t Add(Section section) {
    sections.push_back(std::move(section));
    return static_cast<std::uint32_t>(sections.size());
  }
  // Adds a table of symbols and the table of its names.
  void AddSymbols(std::uint32_t type, const std::vector<Symbol>& symbols) {
    Bytes names = {0};
    Bytes table(24);  // symbol 0 is none
    for (const Symbol& symbol : symbols) {
      table = Join({table,
                    Fixed(static_cast<std::uint32_t>(names.size())),
                    {symbol.info, 0},
                    Fixed(symbol.section),
                    Fixed(symbol.value),
                    Fixed(symbol.bytes)});
      names = Join({names, ZeroEnded(symbol.name)});
    }
    const std::uint32_t strings = Add({.name = ".strtab", .type = kStrtab, .content = names});
    Add({.name = type == kSymtab ? ".symtab" : ".dynsym",
         .type = type,
         .content = table,
         .link = strings,
         .entry_bytes = 24});
  }
  void AddBuildId(const Bytes& id) {
    Add({.name = ".note.gnu.build-id", .type = kNote, .content = Note(3, id), .alignment = 4});
  }

  // A note of the owner GNU.
  static Bytes Note(std::uint32_t type, const Bytes& description, std::size_t alignment = 4) {
    const auto padded = [alignment](Bytes bytes) {
      bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
      return bytes;
    };
    const Bytes head = Join({Fixed(std::uint32_t{4}),
                             Fixed(static_cast<std::uint32_t>(description.size())),
                             Fixed(type),
                             {'G', 'N', 'U', 0}});
    return Join({padded(head), padded(description)});
  }

  // The content of a compressed section.
  static Bytes Compressed(const Bytes& content) {
    uLongf bytes = compressBound(content.size());
    Bytes deflated(bytes);
    compress(deflated.data(), &bytes, content.data(), content.size());
    deflated.resize(bytes);
    return Join({Fixed(std::uint32_t{1}), Fixed(std::uint32_t{0}),
                 Fixed(std::uint64_t{content.size()}), Fixed(std::uint64_t{1}), deflated});
  }

  // The content of a section of the name .zdebug_*.
  static Bytes GnuCompressed(const Bytes& content) {
    Bytes size(8);
    for (std::size_t i = 0; i < 8; ++i)
      size[i] = static_cast<std::uint8_t>(std::uint64_t{content.size()} >> (56 - 8 * i));
    const Bytes elf = Compressed(content);
    return Join({{'Z', 'L', 'I', 'B'}, size, Bytes(elf.begin() + 24, elf.end())});
  }

  // Where the content of the section with that index is.
  [[nodiscard]] std::uint64_t OffsetOf(std::uint32_t index) const {
    std::uint64_t offset = kHeaderBytes + segments.size() * kSegmentBytes;
    for (std::uint32_t i = 1; i < index; ++i) offset += Padded(sections[i - 1].content);
    return offset;
  }

  // The headers, the contents in order, the names of the sections, and the sections' headers.
  [[nodiscard]] Bytes File() const {
    Bytes names = {0};
    Bytes headers(kSectionBytes);  // section 0 is none
    const auto count = static_cast<std::uint32_t>(sections.size());
    for (std::uint32_t i = 1; i <= count; ++i) {
      const Section& section = sections[i - 1];
      headers = Join({headers, Header(section, names.size(), OffsetOf(i), section.content.size())});
      names = Join({names, ZeroEnded(section.name)});
    }
    const std::uint64_t names_offset = OffsetOf(count + 1);
    headers =
        Join({headers, Header({.type = kStrtab}, names.size(), names_offset, names.size() + 1)});
    names.push_back(0);
    Bytes file = FileHeader(names_offset + Padded(names));
    for (const Segment& segment : segments)
      file = Join({file, Fixed(segment.type), Fixed(segment.flags), Fixed(segment.offset),
                   Fixed(segment.address), Fixed(segment.address), Fixed(segment.bytes),
                   Fixed(segment.bytes), Fixed(segment.alignment)});
    for (const Section& section : sections) {
      file = Join({file, section.content});
      file.resize((file.size() + 7) / 8 * 8);
    }
    file = Join({file, names});
    file.resize(names_offset + Padded(names));
    return Join({file, headers});
  }

 private:
  static std::uint64_t Padded(const Bytes& content) { return (content.size() + 7) / 8 * 8; }

  static Bytes Header(const Section& section, std::size_t name, std::uint64_t offset,
                      std::uint64_t bytes) {
    return Join({Fixed(static_cast<std::uint32_t>(name)), Fixed(section.type), Fixed(section.flags),
                 Fixed(section.address), Fixed(offset), Fixed(bytes), Fixed(section.link),
                 Fixed(std::uint32_t{0}), Fixed(section.alignment), Fixed(section.entry_bytes)});
  }
  [[nodiscard]] Bytes FileHeader(std::uint64_t sections_offset) const {
    return Join({{0x7F, 'E', 'L', 'F', 2, 1, 1},
                 Bytes(9),
                 Fixed(std::uint16_t{3}),
                 Fixed(machine),
                 Fixed(std::uint32_t{1}),
                 Fixed(std::uint64_t{0}),
                 Fixed(std::uint64_t{kHeaderBytes}),
                 Fixed(sections_offset),
                 Fixed(std::uint32_t{0}),
                 Fixed(std::uint16_t{kHeaderBytes}),
                 Fixed(std::uint16_t{kSegmentBytes}),
                 Fixed(static_cast<std::uint16_t>(segments.size())),
                 Fixed(std::uint16_t{kSectionBytes}),
                 Fixed(static_cast<std::uint16_t>(sections.size() + 2)),
                 Fixed(static_cast<std::uint16_t>(sections.size() + 1))});
  }
};

}  // namespace strobe::testing
