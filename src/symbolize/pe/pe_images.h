// The PE file in which a module's symbols and debug information may be.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "../images/section_bytes.h"
#include "pe_symbols.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct PeImageFile {
  std::string path;
  std::shared_ptr<const FileSource> source;
  PeFile file;
};

// A module's image as far as its file is there.
struct PeImageSearch {
  std::optional<PeImageFile> image;  // the first file with the module's build id
  bool is_file_there = false;        // a file at one of its paths, whatever it is
};
PeImageSearch FindPeImage(const Module& module, const SymbolFiles& files,
                          const SymbolSearch& search);

// A section of the file. Empty if there is no such section.
SectionBytes OpenSection(const PeImageFile& image, const std::string& name);

}  // namespace internal
}  // namespace strobe
