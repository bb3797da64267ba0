// Files that this process keeps open for modules: what is left of a file that is removed or
// replaced while it is mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// Files beyond these are not listed, and are found by their paths only.
inline constexpr std::size_t kMaxKeptFiles = 4096;

// See Module::file_version. Never 0.
std::uint64_t VersionOfFile(const FileSource& file);

// From now on, and for as long as its owner keeps it open, `file` is the file of `module`, and of
// all modules with the same build id. Without a build id the file's version tells.
void KeepFile(const Module& module, const std::shared_ptr<const FileSource>& file);

// nullptr if the module's file is not kept. A process that keeps none, as a program that is
// profiled, takes no lock here.
std::shared_ptr<const FileSource> KeptFileOf(const Module& module);

}  // namespace strobe::internal
