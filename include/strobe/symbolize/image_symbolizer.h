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
  // Symbol tables kept for the next profile; the least recently used go first, and the last one
  // stays, however large. While one profile is being symbolized, one table more may be in memory.
  std::size_t cache_bytes = std::size_t{64} << 20;
  // Of ELF images: where separate symbols are looked for, by build id. Empty for nowhere.
  std::string debug_directory = "/usr/lib/debug/.build-id";
  // Of PE images: whether the system's own library is asked, where there is one: Windows' DbgHelp,
  // which reads PDB files. It serves one thread at a time, so a program that calls it while it is
  // being profiled says no, and gives its profiler
  // {.symbolizer = DefaultTraits::Symbolizer({.use_system_library = false})}.
  bool use_system_library = true;
};

// The reader of names behind every PlatformSymbolizer, which is a Symbolizer. A module's kind and
// format say where its names are:
// * ELF: the file at its path if that has the module's build id, and the debug directory's file
//   where the former has only dynamic symbols or none. A module without a build id is taken from a
//   file without one that maps the same bytes at the same addresses. Versions of symbols are left
//   out; a stub of a procedure linkage table is named after its target, as "malloc@plt".
// * The vdso: this process' memory.
// * PE: COFF's symbols in its file, or where it has none, its PDB file's, or else what it exports.
// * Generated code has no names.
// Code that no symbol covers becomes "libname.so+0x1234", counted from the module's load bias, and
// so does generated code; an address in no module "0x7f12...".
class ImageSymbolizer {
 public:
  // A longer mangled name stays mangled: the work of demangling grows faster than the name.
  static constexpr std::size_t kMaxMangledBytes = 4096;

  // `files` outlives it.
  explicit ImageSymbolizer(const SymbolFiles& files, ImageSymbolizerOptions options = {});
  ~ImageSymbolizer();
  // A copy has the options, and keeps its own tables.
  ImageSymbolizer(const ImageSymbolizer& other);
  ImageSymbolizer(ImageSymbolizer&&) noexcept;
  ImageSymbolizer& operator=(ImageSymbolizer&&) noexcept;

  // Never fails: what cannot be read costs names.
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
