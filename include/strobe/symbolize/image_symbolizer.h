// ImageSymbolizer: names of functions from the files of images, of ELF (x86-64 or aarch64) and PE
// (x64) alike, on any host.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {

struct ImageSymbolizerOptions {
  // Memory of the symbol tables kept for the next profile. The least recently used tables are
  // dropped first; the last table stays, however large. While a profile is symbolized, one more
  // table may be in memory.
  std::size_t cache_bytes = std::size_t{64} << 20;
  // For ELF images: the directory of separate symbol files, by build id. Empty for none.
  std::string debug_directory = "/usr/lib/debug/.build-id";
  // For PE images: use the system's own library if there is one (Windows' DbgHelp, which reads PDB
  // files). DbgHelp works for one thread at a time. So a program that calls it while it is profiled
  // sets this to false, and gives its profiler
  // {.symbolizer = DefaultTraits::Symbolizer({.use_system_library = false})}.
  bool use_system_library = true;
};

// The base of every PlatformSymbolizer. A module's kind and format tell where its names are:
// * ELF: in the file at its path, if that file has the module's build id; and in the debug
//   directory's file, if the first file has only dynamic symbols or none. For a module without a
//   build id, the file must have none either, and map the same bytes at the same addresses.
//   Versions of symbols are left out. A stub of a procedure linkage table is named after its
//   target: "malloc@plt".
// * The vdso: in this process's memory.
// * PE: COFF symbols in its file; else the symbols of its PDB file; else its exports.
// * Generated code has no names.
// Generated code, and code that no symbol covers, becomes "libname.so+0x1234", counted from the
// module's load bias. An address in no module becomes "0x7f12...".
class ImageSymbolizer {
 public:
  // A longer mangled name stays mangled: the cost of demangling grows faster than the name.
  static constexpr std::size_t kMaxMangledBytes = 4096;

  // `files` must outlive the symbolizer and its copies.
  explicit ImageSymbolizer(const SymbolFiles& files, ImageSymbolizerOptions options = {});
  ~ImageSymbolizer();
  // A copy has the same options and its own tables.
  ImageSymbolizer(const ImageSymbolizer& other);
  ImageSymbolizer(ImageSymbolizer&&) noexcept;
  ImageSymbolizer& operator=(ImageSymbolizer&&) noexcept;

  // Never fails: a file that cannot be read leaves its frames without names.
  absl::StatusOr<Symbols> Symbolize(const Profile& profile);

  // Memory of the tables kept now.
  [[nodiscard]] std::size_t cached_bytes() const;

 private:
  class Cache;
  const SymbolFiles* files_;
  ImageSymbolizerOptions options_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace strobe
