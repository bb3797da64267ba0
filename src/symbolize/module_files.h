// The files in which an ELF module's symbols and debug sections may be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "byte_source.h"
#include "elf_file.h"
#include "strobe/core/module_map.h"

namespace strobe::internal {

// Where separate symbols are looked for, by build id.
inline constexpr char kDebugDirectory[] = "/usr/lib/debug/.build-id";

// The image of `module` in an open source, or nothing where it is another's.
std::optional<ElfFile> OpenFor(const Module& module, const ByteSource& source);

// The module's own file. For a module with a build id, also the file of its separate symbols in
// `debug_directory`, unless that is empty; and for a program, the running program's own file by the
// kernel's path to it, which holds even if the file has been deleted or replaced since.
std::vector<std::string> PathsOf(const Module& module, const std::string& debug_directory);

}  // namespace strobe::internal
