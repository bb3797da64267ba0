// Image: a file that processes map code of, and its unwind tables. ImageTable: all of them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "../symbolize/elf/elf_file.h"
#include "../unwind/module_tables.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/process/mapping.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Its tables are those of the file's own address space, so one table serves every process. Used
// under the lock of the process table; walks use what Entries gave them.
class Image {
 public:
  // `file` is of `source`. `file_version` is that of Module.
  Image(std::uint64_t number, std::string path, ModuleKind kind,
        std::shared_ptr<const ByteSource> source, const ElfFile& file, std::uint64_t file_version,
        const SymbolFiles& files);
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;

  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] const std::string& build_id() const { return build_id_; }
  [[nodiscard]] std::uint64_t file_version() const { return file_version_; }
  [[nodiscard]] ModuleKind kind() const { return kind_; }
  [[nodiscard]] Architecture architecture() const { return sources_.architecture; }

  // Where the byte of code at `file_offset` is in the file's address space.
  [[nodiscard]] std::optional<Address> AddressAt(std::uint64_t file_offset) const;
  // Adds the tables of the code that `module` maps, those that are not built as well. None begins
  // below `floor`.
  void AddEntries(const Module& module, Address floor,
                  std::vector<UnwindModules::Entry>& entries) const;
  // Builds the table of the code at `address` in the file's address space, if it is not built.
  void Build(Address address);
  // Forgets all tables.
  void Drop();
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

  // When a walk last led through it.
  std::atomic<std::uint64_t> last_use = 0;

 private:
  using Segment = ElfFile::Segment;

  std::size_t ReadMemory(Address address, std::span<std::uint8_t> bytes) const;
  [[nodiscard]] Module Describe(const ElfFile& file, const Segment& segment) const;
  void CountMemory();

  const std::uint64_t number_;
  const std::string path_;
  const std::string build_id_;
  const std::uint64_t file_version_;
  const ModuleKind kind_;
  const std::shared_ptr<const ByteSource> source_;
  const std::vector<Segment> segments_;
  const AnyMemoryReader read_;
  const CfiModules::ReadDebugFrame read_debug_frame_;
  const CfiSources sources_;
  std::vector<Module> modules_;  // one a segment of code
  std::vector<std::unique_ptr<ModuleTables>> tables_;
  std::size_t memory_bytes_ = 0;
};

// Not thread-safe.
class ImageTable {
 public:
  // `files` must outlive the table.
  ImageTable(const SymbolFiles& files, SymbolSearch search, std::size_t max_images);

  // The image of a mapping; nullptr if there is no file that can be read, or no room. If `process`
  // is not empty, it is the id of a process that lives: files are looked for below its root first,
  // and those that have gone from their paths by its links to them.
  std::shared_ptr<Image> Find(const Mapping& mapping, const std::string& process);

  // Drops the tables of the images that were used least recently, but not since `now`, until at
  // most `max_bytes` are left. Returns the images whose tables were dropped.
  std::vector<const Image*> Trim(std::size_t max_bytes, std::uint64_t now);

  [[nodiscard]] std::size_t size() const { return images_.size(); }
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  std::shared_ptr<Image> Open(const std::string& path, const Mapping& mapping);
  std::shared_ptr<Image> FindVdso(const Mapping& mapping);
  std::shared_ptr<Image> Known(const std::string& key) const;
  std::shared_ptr<Image> Add(const std::string& path, ModuleKind kind,
                             std::shared_ptr<const ByteSource> source, const ElfFile& file,
                             std::uint64_t file_version, const std::string& key);
  bool MakeRoom();

  const SymbolFiles& files_;
  const SymbolSearch search_;
  const std::size_t max_images_;
  std::vector<std::shared_ptr<Image>> images_;
  // By build id, and by the identity of each file.
  std::unordered_map<std::string, std::weak_ptr<Image>> by_key_;
  std::uint64_t last_number_ = 0;
};

}  // namespace internal
}  // namespace strobe
