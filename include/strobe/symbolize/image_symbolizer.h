// ImageSymbolizer: names of functions and source lines from the files of images, of ELF (x86-64 or
// aarch64) and PE (x64) alike, on any host.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe {

struct ImageSymbolizerOptions {
  SymbolMode mode = SymbolMode::kNames;
  // Memory of the tables and lines kept for the next profile. Those of the least recently used
  // modules are dropped first; the last module's names stay, however large. While a profile is
  // symbolized, one more module's names, and one unit of debug information, may be in memory. A
  // unit of more bytes than this has no lines.
  std::size_t cache_bytes = std::size_t{64} << 20;
  // Time of one call for debug information, by a monotonic clock. What is not done by then has no
  // lines, and is done in the next calls. Each call does at least a little.
  std::chrono::nanoseconds time_limit = std::chrono::nanoseconds::max();
  SymbolSearch search{};
  // For PE images: use the system's own library if there is one (Windows' DbgHelp, which reads PDB
  // files). DbgHelp works for one thread at a time. So a program that calls it while it is profiled
  // sets this to false, and gives its profiler
  // {.symbolizer = DefaultTraits::Symbolizer({.use_system_library = false})}.
  bool use_system_library = true;

  // Those of a profiler's options. `debuginfod_cache` may be empty.
  static ImageSymbolizerOptions From(const SymbolOptions& options,
                                     const std::string& debuginfod_cache);
};

// The base of every PlatformSymbolizer. A module's kind and format tell where its names are:
// * ELF: in the file at its path, if that file has the module's build id; and in those of its
//   separate debug information, if the first file has only dynamic symbols or none. For a module
//   without a build id, the file must have none either, and map the same bytes at the same
//   addresses. Versions of symbols are left out. A stub of a procedure linkage table is named after
//   its target: "malloc@plt".
// * In mode kFull: lines and inlined functions from the first of these files, and of those of
//   SymbolSearch, that has DWARF (versions 2 to 5). A function's name is the symbol's, and an
//   inlined function's is that of the debug information.
// * The vdso: in this process's memory.
// * PE: COFF symbols in its file; else the symbols of its PDB file; else its exports. In mode
//   kFull: lines and inlined functions from the DWARF in its file, as GCC and Clang write it; else
//   from its PDB file.
// * Generated code has no names.
// Generated code, and code that no symbol covers, becomes "libname.so+0x1234", counted from the
// module's load bias. An address in no module becomes "0x7f12...".
class ImageSymbolizer {
 public:
  static constexpr bool kBringsNoFiles = true;
  // A longer mangled name stays mangled: the cost of demangling grows faster than the name.
  static constexpr std::size_t kMaxMangledBytes = 4096;

  // `files` must outlive the symbolizer and its copies.
  explicit ImageSymbolizer(const SymbolFiles& files, ImageSymbolizerOptions options = {});
  ~ImageSymbolizer();
  // A copy has the same options and its own tables.
  ImageSymbolizer(const ImageSymbolizer& other);
  ImageSymbolizer(ImageSymbolizer&&) noexcept;
  ImageSymbolizer& operator=(ImageSymbolizer&&) noexcept;

  // Never fails: a file that cannot be read leaves its frames without names. Empty in mode kNone.
  absl::StatusOr<Symbols> Symbolize(const Profile& profile);

  // Memory of the tables and lines kept now.
  [[nodiscard]] std::size_t cached_bytes() const;

 private:
  class Cache;
  class Work;
  const SymbolFiles* files_;
  ImageSymbolizerOptions options_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace strobe
