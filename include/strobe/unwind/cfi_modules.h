// CfiModules: compiles the call frame information of the loaded modules chunk by chunk, on demand.
// Control plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class ModuleTables;

// A program with 100 MB of text pays for what it executes: a module costs nothing until its first
// chunk is built. CfiModules then reads once where the frame information of each function is, 8
// bytes a function, from the linker's sorted index or, without one, from all of .eh_frame. It keeps
// that index until every chunk is built: the index takes a tenth of the tables' memory, and to read
// it again for each chunk would take longer than to build the chunk.
//
// Functions without .eh_frame, compiled so that no exception can pass through them, may have a
// .debug_frame in the module's file.
class CfiModules {
 public:
  // Ranges that are remembered to have no frame information. Beyond this limit, every address that
  // no entry of a snapshot covers counts as such.
  static constexpr std::size_t kMaxUnknownRanges = 1024;

  // The bytes of the section .debug_frame in a module's file; empty where it has none. It may read
  // files.
  using ReadDebugFrame = std::function<std::vector<std::uint8_t>(const Module& module)>;

  // A chunk's table, from the module's frame information. It is not whole if something could not be
  // read.
  struct BuiltTable {
    std::shared_ptr<const UnwindTable> table;
    bool is_whole = true;
  };
  using BuildTable = std::function<BuiltTable()>;
  // The table of the module's chunk with that number, from a store for several processes, or by
  // build(). It may throw std::bad_alloc.
  using ShareTable = std::function<std::shared_ptr<const UnwindTable>(
      const Module& module, std::size_t chunk, const BuildTable& build)>;

  // A reader of an image's memory when the image has been unloaded: of its file.
  using ReadUnloaded = std::function<AnyMemoryReader(const Module& module)>;
  // Images that were unloaded beyond these, latest first, are forgotten.
  static constexpr std::size_t kMaxUnloaded = 16;

  // `read` reads the profiled process, in which a module may be unloaded at any moment.
  explicit CfiModules(Architecture architecture, AnyMemoryReader read,
                      ReadDebugFrame read_debug_frame = nullptr, ShareTable share_table = nullptr,
                      ReadUnloaded read_unloaded = nullptr);
  ~CfiModules();

  // Takes over `map`, which is of that generation; generations rise. Keeps the tables of modules
  // that stay, unless a part of the module could not be read. Sets modules that were unloaded
  // apart, for walks that were captured before. Reads nothing.
  void Update(const ModuleMap& map, std::uint32_t generation = 0);

  // Builds the chunk of text that holds `pc`. Until the next Update, no walk by a new snapshot is
  // then pending there: if there is no frame information, the snapshot says so of the code around
  // `pc`. False if nothing was pending there before.
  bool Build(Address pc);
  // Builds everything, after which no walk is pending until the next Update.
  void BuildAll();

  // What is built now, for walks.
  [[nodiscard]] std::shared_ptr<const UnwindModules> Snapshot() const;

  // For walks that were captured at an earlier generation, or while a module of it was just being
  // loaded: true if a module of it has been unloaded since, that at `pc` or any.
  [[nodiscard]] bool HasUnloaded(std::uint32_t generation) const;
  [[nodiscard]] bool HasUnloadedAt(std::uint32_t generation, Address pc) const {
    return UnloadedAt(generation, pc) != nullptr;
  }
  // What was loaded at that generation, as Snapshot and Build have what is loaded now. What is in
  // no module counts as without frame information.
  [[nodiscard]] std::shared_ptr<const UnwindModules> SnapshotOf(std::uint32_t generation) const;
  void BuildOf(std::uint32_t generation, Address pc);

  // Of the chunks that are built, in the modules of the last Update.
  [[nodiscard]] CfiStatistics statistics() const;
  // The path of a module whose frame information could not be read at all so far; empty if there is
  // none.
  [[nodiscard]] std::string unread() const;
  // Chunks that are built.
  [[nodiscard]] std::size_t built() const;
  // Without the tables.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Range {
    Address start;
    Address limit;
    bool is_module;  // of the last Update
  };

  struct Unloaded {
    std::unique_ptr<ModuleTables> tables;
    std::uint32_t last_generation = 0;  // that had it
    [[nodiscard]] bool IsOf(std::uint32_t generation) const;
  };

  void SetApart(std::unique_ptr<ModuleTables> tables);
  [[nodiscard]] ModuleTables* UnloadedAt(std::uint32_t generation, Address pc) const;
  bool AddUnknown(Address pc, Address start, Address limit);

  const Architecture architecture_;
  const AnyMemoryReader read_;
  const ReadDebugFrame read_debug_frame_;
  const ShareTable share_table_;
  const ReadUnloaded read_unloaded_;
  std::uint32_t generation_ = 0;
  std::vector<Unloaded> unloaded_;                    // oldest first
  std::vector<std::unique_ptr<ModuleTables>> known_;  // sorted by start
  std::vector<Range> unknown_;                        // without frame information; sorted by start
  bool is_complete_ = true;                           // code that is in neither is unknown, too
  bool is_cut_short_ = false;                         // memory ran out in the last Update
  std::shared_ptr<RuleCache> cache_ =
      std::make_shared<RuleCache>();  // of all snapshots since a module was let go
};

}  // namespace internal
}  // namespace strobe
