// The names of functions in a Windows image's file, as a linker of GNU leaves them there: COFF's symbols.
#pragma once

#include <string>

#include "byte_source.h"
#include "elf_file.h"

namespace strobe::internal {

// By relative virtual addresses. Empty where the file is no Windows image for x64, another one than `build_id` names, or holds no symbols.
// Where a function ends no symbol says: it is where the next one begins, or its section ends.
FunctionTable ReadPeFunctions(const ByteSource& source, const std::string& build_id);

}  // namespace strobe::internal
