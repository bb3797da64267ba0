// WorkerImages: the images that another process has mapped, and their bytes by its addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "../../../symbolize/elf/elf_file.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/process/mapping.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A file, open and read once for all processes that map it; or bytes in memory.
struct OpenImage {
  std::shared_ptr<const ByteSource> source;
  std::vector<std::byte> memory;  // of the vdso, which has no file
  std::optional<ElfFile> file;
  std::uint64_t file_version = 0;  // see Module
};

// Keeps the files open, as far as the limit of files goes: they are what is left of the process's
// memory after its end, and of a file that is removed or replaced. Opens the others when it reads
// them. Not thread-safe.
class WorkerImages {
 public:
  // Modules beyond these have neither names nor unwind information.
  static constexpr std::size_t kMaxImages = 512;

  // `files` must outlive this object.
  WorkerImages(std::uint64_t process_id, const SymbolFiles& files);

  // The modules of these mappings, the program first.
  std::vector<Module> Describe(const std::vector<Mapping>& mappings);
  // Bytes of the files, where Describe has found them mapped.
  std::size_t Read(Address address, std::span<std::uint8_t> bytes) const;

 private:
  struct Image {
    std::string path;
    std::uint64_t inode = 0;
    std::shared_ptr<const OpenImage> open;
    Address load_bias = 0;

    [[nodiscard]] const ElfFile& file() const { return *open->file; }
  };

  Image* Find(const Mapping& mapping);
  std::unique_ptr<Image> Open(const Mapping& mapping) const;
  [[nodiscard]] std::shared_ptr<const OpenImage> OpenFile(const Mapping& mapping) const;
  [[nodiscard]] std::size_t MostOpen() const;
  [[nodiscard]] std::shared_ptr<const OpenImage> OpenVdso(const Mapping& mapping) const;

  const std::uint64_t process_id_;
  const SymbolFiles& files_;
  std::vector<std::unique_ptr<Image>> images_;
};

}  // namespace internal
}  // namespace strobe
