// The names of functions in a Windows image's file. Every field may be hostile.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "byte_source.h"
#include "function_table.h"
#include "strobe/base/visibility.h"
#include "strobe/symbolize/pe_image.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// All names go by relative virtual addresses. Of those that the file does not hold, a table is
// empty.
class PeFile {
 public:
  // Nothing where the file is no Windows image for x64, or another one than `build_id` names.
  // `source` must outlive the result.
  static std::optional<PeFile> Open(const ByteSource& source, const std::string& build_id);

  // COFF's symbols, as a linker of GNU leaves them there. Where a function ends no symbol says: it
  // is where the next one begins, or its section ends.
  [[nodiscard]] FunctionTable ReadFunctions() const;

  // What the debug information says that the image was linked with, where the system can read it.
  // `path` is the file that the source reads. Nothing where the system cannot be asked now.
  [[nodiscard]] std::optional<FunctionTable> ReadDebugFunctions(const std::string& path,
                                                                const SymbolFiles& files) const;

  // What the image exports, of which any linker leaves the names. The image's frame information
  // says where such a function ends, so that the functions behind it, which have no names, do not
  // get its.
  [[nodiscard]] FunctionTable ReadExports() const;

 private:
  PeFile(const ByteSource& source, PeImage image) : source_(&source), image_(std::move(image)) {}

  const ByteSource* source_;
  PeImage image_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
