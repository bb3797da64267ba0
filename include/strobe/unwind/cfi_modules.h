// CfiModules: compiles the call frame information of the loaded modules piece by piece, as it is
// asked for. Control plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_table.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

class CfiRows;
class EhFrameReader;

// A program with 100 MB of text pays for what it executes: a module costs nothing until a piece of
// it is asked for. Then where each of its functions has its frame information is read once, 8 bytes
// a function, from the linker's sorted index or, for want of that, from all of .eh_frame. That is
// kept until every piece is built, for it is a tenth of what the tables will take, and reading it
// again for each piece would cost more than the piece.
//
// Functions without .eh_frame, compiled so that no exception can pass through them, may have a
// .debug_frame in the module's file.
class CfiModules {
 public:
  // Frame information of one module beyond this is not read. libLLVM-14's 100 MB of text have 9 MB.
  static constexpr std::size_t kMaxEhFrameBytes = std::size_t{1} << 28;
  // Ranges outside of all frame information that are remembered as such. Beyond it, all that is in
  // no snapshot's entries is.
  static constexpr std::size_t kMaxUnknownRanges = 1024;

  // The bytes of the section .debug_frame in a module's file; empty where it has none. It may read
  // files.
  using ReadDebugFrame = std::function<std::vector<std::uint8_t>(const Module& module)>;

  // `read` reads the profiled process, in which a module may be unloaded at any moment.
  explicit CfiModules(Architecture architecture, AnyMemoryReader read,
                      ReadDebugFrame read_debug_frame = nullptr);
  ~CfiModules();

  // Takes over `map`: what is built of modules that stay is kept, unless something could not be
  // read of it; modules that went are let go. Reads nothing.
  void Update(const ModuleMap& map);

  // Builds the piece of text that holds `pc`, after which no walk by a new snapshot is pending
  // there, until the next Update: where there is no frame information, the snapshot will say so of
  // the code around. False where nothing was pending there before.
  bool Build(Address pc);
  // Builds everything, after which no walk is pending until the next Update.
  void BuildAll();

  // What is built now, for walks.
  [[nodiscard]] std::shared_ptr<const UnwindModules> Snapshot() const;

  // Of the modules of the last Update, as far as they are built.
  [[nodiscard]] CfiStatistics statistics() const;
  // A module that has frame information, of which nothing could be read so far: its path. Empty
  // where there is none.
  [[nodiscard]] std::string unread() const;
  // Pieces that are built.
  [[nodiscard]] std::size_t built() const;
  // Without the tables.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Known;
  struct Source;
  struct Range {
    Address start;
    Address limit;
    bool is_module;  // of the last Update
  };

  bool AddUnknown(Address pc, Address start, Address limit);
  void BuildPiece(Known& known, std::size_t piece);
  CompiledCfi CompileEhFramePiece(Known& known, Address first, Address limit) const;
  CompiledCfi CompilePdataPiece(Known& known, Address first, Address limit) const;
  void ReadIndex(Known& known) const;
  bool ReadSortedIndex(Known& known) const;
  void ScanForIndex(Known& known, Address eh_frame) const;
  void ReadDebugIndex(Known& known) const;
  static void Scan(const Known& known, Source& source, std::uint64_t bytes, EhFrameReader& reader,
                   EhFrameReader& cie_reader);
  static void AddRows(const Known& known, Source& source, Address first, Address limit,
                      EhFrameReader& reader, EhFrameReader& cie_reader, CfiRows& rows);
  // Only an ELF file has one.
  [[nodiscard]] bool MayHaveDebugFrame(const Module& module) const {
    return read_debug_frame_ != nullptr && module.has_file() && module.format == ImageFormat::kElf;
  }

  const Architecture architecture_;
  const AnyMemoryReader read_;
  const ReadDebugFrame read_debug_frame_;
  std::vector<std::unique_ptr<Known>> known_;  // sorted by start
  std::vector<Range> unknown_;                 // without frame information; sorted by start
  bool is_complete_ = true;                    // whether what is in neither is unknown, too
  bool is_cut_short_ = false;                  // memory ran out in the last Update
  std::shared_ptr<RuleCache> cache_ =
      std::make_shared<RuleCache>();  // of all snapshots since a module was let go
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
