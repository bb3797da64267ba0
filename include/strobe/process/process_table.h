// ProcessTable: processes, the code that they have mapped, and the stacks of their samples.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"
#include "strobe/process/mapping.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"
#include "strobe/unwind/rule_cache.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {
class Image;
class ImageTable;
}  // namespace internal
}  // namespace strobe

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
namespace strobe {

struct ProcessTableOptions {
  // Beyond each of these, what was used least recently is let go, or what is new is refused.
  std::size_t max_processes = 8192;
  std::size_t max_modules = 4096;  // of one process
  std::size_t max_images = 256;    // each keeps its file open
  std::size_t max_table_bytes = std::size_t{256} << 20;
  // Processes are alive, and may have another root directory: files are looked for below
  // /proc/PID/root first. A file that has been removed or replaced is found by the links of
  // /proc/PID, if they may be followed.
  bool uses_process_roots = false;
  // Where else images are looked for by their build ids.
  SymbolSearch search{};
};

// Counts since the table was made, and what there is now.
struct ProcessTableStats {
  std::size_t processes = 0;
  std::size_t images = 0;
  std::size_t table_bytes = 0;  // of all images: their unwind tables, and the indices for more
  std::size_t caches = 0;       // of processes that have one: see ProcessTable
  std::uint64_t walks = 0;
  std::uint64_t truncated_walks = 0;    // the copy of the stack was too short
  std::uint64_t unknown_processes = 0;  // walks of processes that the table does not have
  std::uint64_t refused_walks = 0;      // the sample's CPU is not that of the process's code
  std::uint64_t evicted_processes = 0;  // for want of room
  std::uint64_t evicted_tables = 0;     // images whose tables made room for others
  std::uint64_t refused_modules = 0;    // beyond max_modules
  std::uint64_t missing_images = 0;     // mapped files that could not be read, or found no room
  std::uint64_t refused_tables = 0;     // that one walk alone would have had too many of
};

// A module of a process.
struct ProcessModule {
  Module module;
  // The file that it is a mapping of: equal in all processes that map it. 0 if it has none, or none
  // that could be read.
  std::uint64_t image_number = 0;
  std::shared_ptr<internal::Image> image{};
};

// The code that a process has mapped, as it was once. Immutable.
class ProcessCode {
 public:
  using Modules = std::vector<std::shared_ptr<const ProcessModule>>;

  // `modules` are sorted by start and do not overlap.
  ProcessCode(Modules modules, UnwindModules tables)
      : modules_(std::move(modules)), tables_(std::move(tables)) {}

  [[nodiscard]] const Modules& modules() const { return modules_; }
  // What of their tables was built then.
  [[nodiscard]] const UnwindModules& tables() const { return tables_; }
  // The module that holds `address`, or nullptr.
  [[nodiscard]] const ProcessModule* Find(Address address) const;

 private:
  Modules modules_;
  UnwindModules tables_;
};

// The registers of a thread of a 64-bit program.
using SampleRegisters = std::variant<X86_64Registers, Aarch64Registers>;

// What a sample has of a thread. Perf events give both: see PerfRegisters.
struct StackSample {
  SampleRegisters registers;
  std::span<const std::byte> stack{};  // from the stack pointer on
};

// Learns from events what processes have mapped, and so never scans again. Unwind tables belong to
// files, not to processes: a file that many processes map is compiled once, chunk by chunk, when a
// stack first leads through it. A file is known by its build id, or by device, inode, size and
// times, so a file that was written anew is another file.
//
// A process that has an eighth of all samples gets a cache of rules (RuleCache) of its own, of
// 256 KiB. The others have none, so that a thousand of them need no memory for it.
//
// All functions may be called by any thread. Events of one process come in their order. No function
// throws but by std::bad_alloc, after which the call can be repeated.
class ProcessTable {
 public:
  // `files` must outlive the table.
  explicit ProcessTable(const SymbolFiles& files, ProcessTableOptions options = {});
  ~ProcessTable();
  ProcessTable(const ProcessTable&) = delete;
  ProcessTable& operator=(const ProcessTable&) = delete;

  // Takes over the mappings and the name of a process that runs already, from /proc. NotFound if
  // there is no such process, PermissionDenied if its mappings may not be read.
  absl::Status Attach(std::uint64_t process);

  // Events. A process begins with the first event that names it.
  // New code, in place of whatever was mapped there.
  void Map(std::uint64_t process, const Mapping& mapping);
  // `child` begins with the code and the name of `parent`. Does nothing if they are equal: threads.
  void Fork(std::uint64_t parent, std::uint64_t child);
  // Nothing is mapped any more.
  void Exec(std::uint64_t process);
  void SetName(std::uint64_t process, std::string_view name);
  void Exit(std::uint64_t process);

  // Unwinds a sample. Writes at most frames.size() addresses, leaf first, as an Unwinder does. The
  // end is kTruncated if the copy of the stack was too short for the next frame, and kNoUnwindInfo
  // if the process is unknown, its code is for another CPU than the sample, or the code's file
  // could not be read. May read files, for code that no earlier stack has led through.
  WalkResult Unwind(std::uint64_t process, const StackSample& sample, std::span<Address> frames);

  // The code of a process now; nullptr if the process is unknown.
  [[nodiscard]] std::shared_ptr<const ProcessCode> Find(std::uint64_t process);
  // Empty if unknown.
  [[nodiscard]] std::string Name(std::uint64_t process) const;
  [[nodiscard]] ProcessTableStats stats() const;

 private:
  struct Process {
    std::string name;
    ProcessCode::Modules modules;             // sorted by start; do not overlap
    std::shared_ptr<const ProcessCode> code;  // of the modules; nullptr if it must be made anew
    std::shared_ptr<RuleCache> cache;         // of the modules; nullptr if it has none of its own
    // Of the first image; those of others are not read. Nothing as long as there is none.
    std::optional<Architecture> architecture;
    std::uint64_t last_use = 0;
    std::uint64_t walks = 0;  // since the last GiveCaches
  };

  // The code that a sample of the architecture is of; nullptr if there is none.
  std::shared_ptr<const ProcessCode> CodeFor(std::uint64_t process, Architecture architecture,
                                             std::uint64_t& mark);
  template <class Registers>
  WalkResult Walk(std::uint64_t process, const Registers& registers,
                  std::span<const std::byte> stack, std::span<Address> frames);

  // Each is called with the lock held.
  Process& Use(std::uint64_t id);
  void Add(Process& process, const Mapping& mapping, std::uint64_t id);
  static void Clear(Process& process);
  std::shared_ptr<internal::Image> FindImage(Process& process, const Mapping& mapping,
                                             std::uint64_t id);
  [[nodiscard]] Mapping WithFile(const Process& process, const Mapping& mapping,
                                 std::uint64_t id) const;
  const std::shared_ptr<const ProcessCode>& CodeOf(Process& process) const;
  void TrimTables(std::uint64_t now);
  void GiveCaches();

  std::shared_ptr<const ProcessCode> Build(std::uint64_t id, const ProcessCode& code,
                                           std::span<const Address> frames);
  static void MarkUses(const ProcessCode& code, std::span<const Address> frames, std::uint64_t now);

  const SymbolFiles& files_;
  const ProcessTableOptions options_;
  mutable std::mutex mutex_;
  const std::unique_ptr<internal::ImageTable> images_;
  std::unordered_map<std::uint64_t, Process> processes_;
  std::uint64_t clock_ = 0;  // counts uses
  ProcessTableStats stats_;
  std::atomic<std::uint64_t> truncated_walks_ = 0;
};

}  // namespace strobe
#pragma GCC diagnostic pop
