// ElfFile: the build id, the functions and the sections of an ELF file. Every field is checked
// before it is used: the file may be broken, changing or hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../images/byte_source.h"
#include "../images/function_table.h"
#include "strobe/arch/registers.h"

namespace strobe::internal {

// Limits of what is read of one file. A larger table counts as none.
inline constexpr std::size_t kMaxSections = 1 << 16;
inline constexpr std::size_t kMaxNoteBytes = 64 * 1024;
inline constexpr std::size_t kMaxSectionNameBytes = std::size_t{1} << 20;
// A table of functions is read a window at a time. What is beyond these limits is left out.
inline constexpr std::size_t kMaxVisitedSymbols = std::size_t{1} << 24;
inline constexpr std::size_t kMaxFunctions = std::size_t{1} << 23;
inline constexpr std::size_t kMaxFunctionNameBytes = std::size_t{256} << 20;
// Of all sections of a file.
inline constexpr std::size_t kMaxLinkageTableBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxRelocations = std::size_t{1} << 22;

struct LinkageStub;

// A 64-bit little-endian ELF image for x86-64 or aarch64.
class ElfFile {
 public:
  enum class Symbols { kNone, kDynamic, kFull };

  struct Segment {
    std::uint32_t type, flags;
    std::uint64_t offset, address, physical_address, file_size, memory_size, alignment;
    // True if the segment is loaded and may be executed.
    [[nodiscard]] bool is_code() const;
    // True if a mapping of the segment has the file's byte at `file_offset`.
    [[nodiscard]] bool Holds(std::uint64_t file_offset) const;
  };

  // Empty for any other file. `source` must outlive the result.
  static std::optional<ElfFile> Open(const ByteSource& source);

  ElfFile(ElfFile&&) = default;
  ElfFile& operator=(ElfFile&&) = default;

  // Lower-case hexadecimal; empty if the file has none.
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  // The best table of symbols in the file: .symtab, else .dynsym.
  [[nodiscard]] Symbols symbols() const { return symbols_; }
  [[nodiscard]] Architecture architecture() const { return architecture_; }
  [[nodiscard]] const std::vector<Segment>& segments() const { return segments_; }
  // True if a loaded segment puts the byte at `file_offset` at `address`.
  [[nodiscard]] bool Maps(std::uint64_t file_offset, std::uint64_t address) const;
  // Where the loaded segment of code with the byte at `file_offset` puts that byte.
  [[nodiscard]] std::optional<std::uint64_t> AddressAt(std::uint64_t file_offset) const;
  [[nodiscard]] FunctionTable ReadFunctions() const;
  // Where the section of that name is in the file.
  struct SectionPlace {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;    // in the file
    std::uint64_t address = 0;  // where the image is loaded as it says
    bool is_compressed = false;
  };
  [[nodiscard]] std::optional<SectionPlace> FindSection(std::string_view name) const;
  // The bytes of the section of that name. Empty if there is no such section, if it is compressed
  // (see OpenSection of elf_images.h), or if it has more than `max_bytes`.
  [[nodiscard]] std::vector<std::uint8_t> ReadSection(std::string_view name,
                                                      std::size_t max_bytes) const;
  // Where the frame information is, by addresses of the image: its index, .eh_frame_hdr, as a
  // segment says; of an image without one (musl-gcc's, ld's alone, plain -static) .eh_frame, as a
  // section says. 0 for what there is not.
  struct FrameInformation {
    std::uint64_t index = 0;
    std::uint64_t eh_frame = 0;
    std::uint64_t eh_frame_bytes = 0;
  };
  [[nodiscard]] FrameInformation FindFrameInformation() const;
  // Reads what a process that maps the segments of `source` has at `address` of the image. Returns
  // how many bytes, up to the segment's end.
  static std::size_t ReadMapped(const ByteSource& source, std::span<const Segment> segments,
                                std::uint64_t address, std::span<std::uint8_t> bytes);
  // The stubs through which the image calls functions of other images and its own indirect
  // functions. A stub is named after its target: "malloc@plt". `functions` names the image's own.
  [[nodiscard]] FunctionTable ReadLinkageStubs(const FunctionTable& functions) const;

 private:
  struct Section {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, size;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_size;
  };
  struct Symbol {
    std::uint32_t name;
    unsigned char info, other;
    std::uint16_t section;
    std::uint64_t value, size;
  };
  struct SymbolTable {
    std::vector<Symbol> symbols;
    std::vector<char> names;  // without versions
    // Empty if there is no such symbol.
    [[nodiscard]] std::string_view NameOf(std::size_t symbol) const;
  };

  explicit ElfFile(const ByteSource& source) : source_(&source) {}
  bool ReadHeaders();
  void ReadBuildId();
  bool ReadBuildId(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment);
  // Adds the functions of a table of symbols, with the places of their names in its strings. False
  // if the table has more than are kept.
  struct Functions {
    std::vector<FunctionTable::Function> all;
    std::vector<std::size_t> unsized;  // indices of those whose end the file does not give
  };
  bool VisitFunctions(const Section& section, Functions& functions) const;
  // Replaces the places of names in `strings` by places in `names`; 0 for a function without a
  // name. False if there are more names than are kept.
  bool ReadFunctionNames(const Section& strings, std::vector<FunctionTable::Function>& functions,
                         std::vector<char>& names) const;
  // Empty if the section cannot be read.
  [[nodiscard]] SymbolTable ReadSymbols(const Section& section) const;
  [[nodiscard]] std::vector<LinkageStub> FindLinkageStubs() const;
  // The names of all sections; empty if they cannot be read.
  [[nodiscard]] std::vector<char> ReadSectionNames() const;

  const ByteSource* source_;
  Architecture architecture_ = Architecture::kX86_64;
  std::uint16_t section_names_ = 0;  // index of the section that holds the names
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
  const Section* symbol_section_ = nullptr;
  Symbols symbols_ = Symbols::kNone;
  std::string build_id_;
};

}  // namespace strobe::internal
