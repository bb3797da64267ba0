// PeImage: the headers of a Windows image for x64, read from memory or from its file. Compiled and
// tested on every host.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// All positions except positions in files are relative virtual addresses: bytes from the image's
// start in memory.
struct PeImage {
  // Sections that are read; a real image has a few dozen.
  static constexpr std::size_t kMaxSections = 4096;
  // Bytes of a path that are read. A longer path is cut, and names no file.
  static constexpr std::size_t kMaxPathBytes = 4096;

  // What is read: the image in memory, or its file.
  enum class Layout : std::uint8_t { kLoaded, kFile };

  struct Section {
    // Padded with zeros. "/" and a number stand for a longer name: its place in the table of
    // strings that follows COFF's symbols.
    std::array<char, 8> name{};
    std::uint32_t start = 0;
    std::uint32_t bytes = 0;  // in memory
    std::uint32_t file_offset = 0;
    std::uint32_t file_bytes = 0;
    bool is_code = false;
  };

  // Empty if this is not an image for x64. Every field may be hostile.
  static std::optional<PeImage> Open(const AnyMemoryReader& read, Layout layout);

  // The place in the file of the byte at `position`; empty if the byte is not from the file.
  [[nodiscard]] std::optional<std::uint64_t> FileOffset(std::uint32_t position) const;

  // The image's code, if the image is in memory at `base`.
  [[nodiscard]] std::vector<Module> ModulesAt(Address base, const std::string& path) const;

  std::vector<Section> sections;
  bool is_library = false;           // else a program
  std::uint64_t preferred_base = 0;  // the address that the file asks for
  std::uint32_t image_bytes = 0;
  std::uint32_t pdata = 0;  // its frame information
  std::uint32_t pdata_bytes = 0;
  std::uint32_t exports = 0;  // the directory of exported names
  std::uint32_t exports_bytes = 0;
  std::uint32_t symbols_offset = 0;  // of COFF's symbols in the file
  std::uint32_t symbol_count = 0;
  // The image's name on Windows' symbol servers, in lower case: the GUID and age of its debug
  // information; without debug information, the time of linking and the image's size.
  std::string build_id;
  // The path that the linker wrote the debug information to (a PDB file), in UTF-8. Empty if there
  // is none.
  std::string debug_file;
};

}  // namespace internal
}  // namespace strobe
