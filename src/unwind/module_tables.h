// ModuleTables: the unwind tables of one module, built chunk by chunk, on demand.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "fde_index.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The table of code without frame information. All such code shares it.
const std::shared_ptr<const UnwindTable>& EmptyTable();

// A cache that stays empty, for snapshots in which an address is other code than in the next one:
// see RuleCache. All of them share it.
const std::shared_ptr<RuleCache>& EmptyCache();

// Where a module's frame information comes from. `read_debug_frame` and `share_table` may be null.
struct CfiSources {
  Architecture architecture;
  const AnyMemoryReader& read;
  const CfiModules::ReadDebugFrame& read_debug_frame;
  const CfiModules::ShareTable* share_table = nullptr;
};

// A chunk that throws std::bad_alloc is not built, and can be built later.
class ModuleTables {
 public:
  // True if the module may have frame information, and its text is not too large for tables.
  static bool CanBuild(const Module& module, const CfiSources& sources);

  // Reads nothing. What `sources` refers to must outlive this object. `since` is the first
  // generation of modules that has this one.
  ModuleTables(const Module& module, const CfiSources& sources, std::uint32_t since = 0)
      : module_(module),
        since_(since),
        sources_(sources),
        in_memory_(NewIndex()),
        in_file_(NewIndex()),
        tables_((module.limit - module.start + UnwindModules::kChunkBytes - 1) /
                UnwindModules::kChunkBytes),
        pending_(tables_.size()) {}
  ModuleTables(const ModuleTables&) = delete;
  ModuleTables& operator=(const ModuleTables&) = delete;

  [[nodiscard]] const Module& module() const { return module_; }
  [[nodiscard]] std::uint32_t since() const { return since_; }

  // What is not built yet is built by `read` from now on: the module's memory has gone.
  void ReadFrom(AnyMemoryReader read) { read_instead_ = std::move(read); }
  [[nodiscard]] std::size_t chunks() const { return tables_.size(); }
  // Chunks that are built.
  [[nodiscard]] std::size_t built() const { return tables_.size() - pending_; }

  // The chunk's text; nullptr for its table while it is not built.
  [[nodiscard]] UnwindModules::Entry Entry(std::size_t chunk) const {
    const Address start = module_.start + chunk * UnwindModules::kChunkBytes;
    return {start, std::min<Address>(start + UnwindModules::kChunkBytes, module_.limit),
            tables_[chunk]};
  }

  // Builds the chunk's table. Returns false if it is built already.
  bool Build(std::size_t chunk);

  // True if something could not be read, perhaps because the module was just being unloaded.
  [[nodiscard]] bool is_suspect() const { return is_suspect_; }
  // Of the chunks that are built.
  [[nodiscard]] const CfiStatistics& statistics() const { return statistics_; }
  // Without the tables.
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + in_memory_.memory_bytes() + in_file_.memory_bytes() +
           tables_.capacity() * sizeof(tables_[0]);
  }

 private:
  [[nodiscard]] FdeIndex NewIndex() const { return {sources_.architecture, module_, read_}; }
  CfiModules::BuiltTable Compile(std::size_t chunk);
  CompiledCfi CompileEhFrame(Address first, Address limit);
  CompiledCfi CompileIndexed(Address first, Address limit);
  CompiledCfi CompilePdata(Address first, Address limit);
  void AddUndescribed(Address first, Address limit, CompiledCfi& compiled) const;
  void ReadIndex();
  [[nodiscard]] Address EhFrameOfHeader(bool& is_unread) const;
  bool ReadAllOfEhFrame();

  const Module module_;
  const std::uint32_t since_;
  const CfiSources sources_;
  AnyMemoryReader read_instead_;
  const AnyMemoryReader read_ = [this](Address address, std::span<std::uint8_t> bytes) {
    return read_instead_ ? read_instead_(address, bytes) : sources_.read(address, bytes);
  };
  FdeIndex in_memory_;  // .eh_frame
  FdeIndex in_file_;    // .debug_frame, of functions that .eh_frame does not have
  std::vector<std::shared_ptr<const UnwindTable>> tables_;  // one a chunk; null while not built
  std::size_t pending_;                                     // chunks that are not built
  bool has_index_ = false;
  bool has_all_ = false;  // all of .eh_frame has been read, and not the linker's index alone
  bool is_suspect_ = false;
  CfiStatistics statistics_;
};

}  // namespace internal
}  // namespace strobe
