// The files in which an ELF module's symbols and debug sections may be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "byte_source.h"
#include "elf_file.h"
#include "strobe/core/module_map.h"

namespace strobe::internal {

// The directory of separate symbol files, by build id.
inline constexpr char kDebugDirectory[] = "/usr/lib/debug/.build-id";

// The ELF image in an open source; empty if the source is not the image of `module`.
std::optional<ElfFile> OpenFor(const Module& module, const ByteSource& source);

// The module's own file. For a module with a build id, also the file of its separate symbols in
// `debug_directory`, unless that is empty. For a program, also the kernel's path to the running
// program's file, which stays valid after the file is deleted or replaced.
std::vector<std::string> PathsOf(const Module& module, const std::string& debug_directory);

}  // namespace strobe::internal
