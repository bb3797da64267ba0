// What a symbolizer reads of an ELF file. Every field is checked before it is used: the file may be
// broken, changing or hostile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "byte_source.h"
#include "linkage_stub.h"

namespace strobe::internal {

// What is read at most of one file; a larger table counts as none.
inline constexpr std::size_t kMaxSections = 1 << 16;
inline constexpr std::size_t kMaxNoteBytes = 64 * 1024;
inline constexpr std::size_t kMaxSymbols = std::size_t{1} << 22;
inline constexpr std::size_t kMaxStringTableBytes = std::size_t{256} << 20;
// Of a table of functions, which is read a window at a time, more is left out. Its strings may be
// longer than what is kept of them.
inline constexpr std::size_t kMaxVisitedSymbols = std::size_t{1} << 24;
inline constexpr std::size_t kMaxFunctions = std::size_t{1} << 23;
inline constexpr std::size_t kMaxFunctionNameBytes = std::size_t{256} << 20;
inline constexpr std::size_t kMaxSectionNameBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxLinkageTableBytes = std::size_t{4}
                                                     << 20;  // of all linkage tables of a file
inline constexpr std::size_t kMaxRelocations = std::size_t{1} << 22;  // in all sections of a file

// The functions of one image, sorted by address.
class FunctionTable {
 public:
  struct Function {
    std::uint64_t address = 0;  // in the file's own virtual addresses
    std::uint64_t end = 0;      // one past its last byte
    std::uint32_t name = 0;     // offset into names
  };

  // Of a longer name only so much: it is of no use, and a hostile file has it a thousand
  // times.
  static constexpr std::size_t kMaxNameBytes = 64 * 1024;

  FunctionTable() = default;
  // `names` holds a terminating zero after each function's name.
  FunctionTable(std::vector<Function> functions, std::vector<char> names);

  // The symbol's name as it stands in the file, without a version, or empty. Valid as long as the
  // table.
  [[nodiscard]] std::string_view Find(std::uint64_t address) const;
  [[nodiscard]] bool empty() const { return functions_.empty(); }
  // Whether some of the image's functions are left out, because it has more than is kept.
  [[nodiscard]] bool is_partial() const { return is_partial_; }
  void set_is_partial(bool is_partial) { is_partial_ = is_partial; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + functions_.capacity() * sizeof(Function) + names_.capacity();
  }

 private:
  [[nodiscard]] std::string_view NameOf(const Function& function) const;

  std::vector<Function> functions_;
  std::vector<char> names_;
  bool is_partial_ = false;
};

// A 64-bit little-endian ELF image for x86-64 or aarch64.
class ElfFile {
 public:
  enum class Symbols { kNone, kDynamic, kFull };

  // Nothing for any other file. `source` must outlive the result.
  static std::optional<ElfFile> Open(const ByteSource& source);

  ElfFile(ElfFile&&) = default;
  ElfFile& operator=(ElfFile&&) = default;

  // Lower-case hexadecimal; empty where there is none.
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  // The best table of symbols there is: .symtab, else .dynsym.
  [[nodiscard]] Symbols symbols() const { return symbols_; }
  // Whether a loaded segment puts the byte at `file_offset` at `address`.
  [[nodiscard]] bool Maps(std::uint64_t file_offset, std::uint64_t address) const;
  [[nodiscard]] FunctionTable ReadFunctions() const;
  // The bytes of the section of that name, at most so many, inflated where they are compressed.
  // Empty where there is none.
  [[nodiscard]] std::vector<std::uint8_t> ReadSection(std::string_view name,
                                                      std::size_t max_bytes) const;
  // The stubs through which the image calls other images' functions and its own indirect ones, by
  // the names of their targets: "malloc@plt". `functions` names the image's own.
  [[nodiscard]] FunctionTable ReadLinkageStubs(const FunctionTable& functions) const;

 private:
  struct Section {
    std::uint32_t name, type;
    std::uint64_t flags, address, offset, size;
    std::uint32_t link, info;
    std::uint64_t alignment, entry_size;
  };
  struct Segment {
    std::uint32_t type, flags;
    std::uint64_t offset, address, physical_address, file_size, memory_size, alignment;
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
    // Empty for a symbol that there is not.
    [[nodiscard]] std::string_view NameOf(std::size_t symbol) const;
  };

  explicit ElfFile(const ByteSource& source) : source_(&source) {}
  bool ReadHeaders();
  void ReadBuildId();
  bool ReadBuildId(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment);
  // The functions of a table of symbols, with the places of their names in its strings. False where
  // it has more than are kept.
  struct Functions {
    std::vector<FunctionTable::Function> all;
    std::vector<std::size_t> unsized;  // of these, the ones whose end is not given
  };
  bool VisitFunctions(const Section& section, Functions& functions) const;
  // Reads their names; from then on, those without one have the number 0. False where there are
  // more than are kept.
  bool ReadFunctionNames(const Section& strings, std::vector<FunctionTable::Function>& functions,
                         std::vector<char>& names) const;
  // Empty where it cannot be read.
  [[nodiscard]] SymbolTable ReadSymbols(const Section& section) const;
  [[nodiscard]] std::vector<LinkageStub> FindLinkageStubs() const;
  // Of all sections; empty where they cannot be read.
  [[nodiscard]] std::vector<char> ReadSectionNames() const;

  const ByteSource* source_;
  std::uint16_t machine_ = 0;
  std::uint16_t section_names_ = 0;  // the section that holds them
  std::vector<Section> sections_;
  std::vector<Segment> segments_;
  const Section* symbol_section_ = nullptr;
  Symbols symbols_ = Symbols::kNone;
  std::string build_id_;
};

}  // namespace strobe::internal
