// The memory of an image that is not mapped any more, by its file.
#pragma once

#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

// Reads what a process had at addresses of `module`'s ELF image, also beyond the module's own
// range, before it wrote there. The file is opened at the first read, and must be the module's by
// its build id, or map the same bytes; otherwise nothing can be read. `files` must outlive the
// reader. Not thread-safe.
AnyMemoryReader ReadImageOf(const Module& module, const SymbolFiles& files);

}  // namespace strobe
