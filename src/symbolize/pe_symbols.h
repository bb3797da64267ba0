// The names of functions in a Windows image's file. Every field may be hostile.
#pragma once

#include <string>

#include "byte_source.h"
#include "elf_file.h"

namespace strobe::internal {

// All go by relative virtual addresses, and are empty where the file is no Windows image for x64, another one than `build_id` names, or
// holds no such names.

// COFF's symbols, as a linker of GNU leaves them there. Where a function ends no symbol says: it is where the next one begins, or its
// section ends.
FunctionTable ReadPeFunctions(const ByteSource& source, const std::string& build_id);

// What the debug information says that the image was linked with, where the system can read it. `path` is the file that `source` reads.
// Nothing where the system cannot be asked now.
std::optional<FunctionTable> ReadPeDebugFunctions(const ByteSource& source, const std::string& build_id, const std::string& path);

// What the image exports, of which any linker leaves the names. The image's frame information says where such a function ends, so that the
// functions behind it, which have no names, do not get its.
FunctionTable ReadPeExports(const ByteSource& source, const std::string& build_id);

}  // namespace strobe::internal
