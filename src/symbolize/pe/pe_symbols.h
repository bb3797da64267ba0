// The names of functions in a Windows image's file. Every field may be hostile.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "../images/byte_source.h"
#include "../images/function_table.h"
#include "strobe/base/visibility.h"
#include "strobe/symbolize/pe_image.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// All tables have relative virtual addresses. A table is empty if the file does not have its names.
class PeFile {
 public:
  // Empty if the file is not a Windows image for x64 with that build id. `source` must outlive the
  // result.
  static std::optional<PeFile> Open(const ByteSource& source, const std::string& build_id);

  // The COFF symbols, as the GNU linker writes them. They have no sizes: a function ends where the
  // next one begins, or with its section.
  [[nodiscard]] FunctionTable ReadFunctions() const;

  // The functions of the image's debug information, if the system can read it. `path` is the file
  // that the source reads. Empty if the system's library is in use now.
  [[nodiscard]] std::optional<FunctionTable> ReadDebugFunctions(const std::string& path,
                                                                const SymbolFiles& files) const;

  // Calls `visit` for each of `addresses` with its lines in the image's debug information, or for
  // none if the system cannot read it, or if its library is in use now.
  void VisitDebugLines(const std::string& path, const SymbolFiles& files,
                       std::span<const std::uint64_t> addresses,
                       const SymbolFiles::LineVisitor& visit) const;

  // The image's exports, which every linker writes. The image's frame information tells where an
  // exported function ends. Otherwise the unnamed functions behind it would get its name.
  [[nodiscard]] FunctionTable ReadExports() const;

  // Where the section of that name is in the file. Empty if there is none.
  struct SectionPlace {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] std::optional<SectionPlace> FindSection(std::string_view name) const;

  // Where the byte at `file_offset` is in memory, counted from the image's start. Empty if no
  // section puts it there.
  [[nodiscard]] std::optional<std::uint64_t> AddressAt(std::uint64_t file_offset) const;

  // The address that the image asks for: debug information counts from zero, not from there.
  [[nodiscard]] std::uint64_t preferred_base() const { return image_.preferred_base; }

 private:
  PeFile(const ByteSource& source, PeImage image) : source_(&source), image_(std::move(image)) {}

  const ByteSource* source_;
  PeImage image_;
};

}  // namespace internal
}  // namespace strobe
