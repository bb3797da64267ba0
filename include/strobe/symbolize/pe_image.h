// PeImage: what the headers of a Windows image for x64 say, in memory or in its file. Compiled and
// tested on every host.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// All positions but those of files are relative virtual addresses: bytes from where the image
// begins in memory.
struct PeImage {
  // Sections that are read; a real image has a few dozen.
  static constexpr std::size_t kMaxSections = 4096;
  // Bytes of a path that are read; longer ones are cut off, and so of no use.
  static constexpr std::size_t kMaxPathBytes = 4096;

  // Copies bytes of the image, of what is in memory or in the file; returns how many could be read,
  // from the front.
  using Read = std::function<std::size_t(std::uint64_t position, std::span<std::uint8_t> bytes)>;
  enum class Layout : std::uint8_t { kLoaded, kFile };

  struct Section {
    std::uint32_t start = 0;
    std::uint32_t bytes = 0;  // in memory
    std::uint32_t file_offset = 0;
    std::uint32_t file_bytes = 0;
    bool is_code = false;
  };

  // Nothing for what is no image for x64. Every field may be hostile.
  static std::optional<PeImage> Open(const Read& read, Layout layout);

  // Where the byte at `position` lies in the file; nothing where it is not from there.
  [[nodiscard]] std::optional<std::uint64_t> FileOffset(std::uint32_t position) const;

  // Its code, as it lies in memory from `base` on.
  [[nodiscard]] std::vector<Module> ModulesAt(Address base, const std::string& path) const;

  std::vector<Section> sections;
  bool is_library = false;           // else a program
  std::uint64_t preferred_base = 0;  // that the file asks to be loaded at
  std::uint32_t image_bytes = 0;
  std::uint32_t pdata = 0;  // its frame information
  std::uint32_t pdata_bytes = 0;
  std::uint32_t exports = 0;  // what it offers to others by name
  std::uint32_t exports_bytes = 0;
  std::uint32_t symbols_offset = 0;  // of COFF's symbols in the file
  std::uint32_t symbol_count = 0;
  // As Windows' symbol servers name it, in lower case: the GUID and age of its debug information,
  // or without any, the link's time and the image's size.
  std::string build_id;
  // Where the linker put its debug information: a PDB file's path, in UTF-8. Empty where there is
  // none.
  std::string debug_file;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
