// The ELF files in which a module's symbols and debug information may be.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "../images/section_bytes.h"
#include "elf_file.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

// The ELF image in an open source; empty if the source is not the image of `module`.
std::optional<ElfFile> OpenFor(const Module& module, const ByteSource& source);

// One of a module's files: its image, or its separate debug information.
struct ElfImage {
  std::string path;
  std::shared_ptr<const FileSource> source;
  ElfFile file;
};

// Visits the files of `module` that are there, best first, until `visit` returns false. The file
// that this process keeps open for the module (KeepFile) comes first. All have the module's build
// id. For a module without one, the image must have none either, and map the same bytes at the same
// addresses; and the checksum in its section .gnu_debuglink must be that of the separate file,
// which is not read if it has more than kMaxChecksumBytes.
inline constexpr std::uint64_t kMaxChecksumBytes = std::uint64_t{1} << 30;
void VisitElfImages(const Module& module, const SymbolFiles& files, const SymbolSearch& search,
                    const std::function<bool(ElfImage&& image)>& visit);

// The ELF file at `path`, whatever it is; empty if there is none.
std::optional<ElfImage> OpenElfImage(const std::string& path, const SymbolFiles& files);

// A section of the file, inflated where it is compressed: piece by piece what zlib has compressed,
// and at once, by the library of `files`, what zstd has. Empty if there is no such section, and if
// it cannot be inflated. What zstd makes of it is at most kMaxWholeBytes: it is held in memory.
inline constexpr std::uint64_t kMaxWholeBytes = std::uint64_t{256} << 20;
SectionBytes OpenSection(const ElfImage& image, const std::string& name, const SymbolFiles& files);

}  // namespace strobe::internal
