// TableStore: the unwind tables of images, each built once for all programs of a worker, in memory
// that every program maps for reading only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

struct TableStoreStats {
  std::size_t tables = 0;
  std::size_t bytes = 0;       // of the tables' blocks
  std::uint64_t found = 0;     // asked for, and there
  std::uint64_t built = 0;     // by this store's callers
  std::uint64_t evicted = 0;   // unused ones that made room
  std::uint64_t unshared = 0;  // that found no room, or whose image has no key
};

// A table belongs to an image: its build id, or its file's device, inode, size and time of change,
// and the part that is mapped as code. So a file that has changed under the same name is another
// image. A table that is kept while no program uses it makes room for others when the limit of
// bytes is reached, those used least recently first. Thread-safe.
class TableStore {
 public:
  // The memory is sparse: address space, of which the tables and their places take what they need.
  static constexpr std::size_t kMemoryBytes = std::size_t{256} << 20;
  static constexpr std::size_t kMaxTableBytes = std::size_t{128} << 20;
  static constexpr std::size_t kMaxTables = 16 * 1024;

  using Table = std::shared_ptr<const UnwindTable>;

  // ResourceExhausted if the system refuses the memory.
  static absl::StatusOr<std::shared_ptr<TableStore>> Create(
      std::size_t max_table_bytes = kMaxTableBytes);
  ~TableStore();
  TableStore(const TableStore&) = delete;
  TableStore& operator=(const TableStore&) = delete;

  // The table of the module's chunk with that number. Where it is not there, build() makes it, in
  // the calling thread; other callers for the same table wait. A table that is not whole, or finds
  // no room, is the caller's alone. The tables outlive the store.
  Table Share(const Module& module, std::size_t chunk, const CfiModules::BuildTable& build);

  // Where the table's block is in the memory; none if it is not there.
  [[nodiscard]] std::optional<std::size_t> OffsetOf(const UnwindTable& table) const;
  // Of the memory: for programs, sealed against shrinking, and against writing by others.
  [[nodiscard]] int descriptor() const;
  [[nodiscard]] TableStoreStats stats() const;

 private:
  class Memory;
  struct Kept {
    std::mutex building;
    Table table;  // guarded by `building`, and by the store's mutex for the eviction
    std::uint64_t last_use = 0;
  };

  TableStore(std::shared_ptr<Memory> memory, std::size_t max_table_bytes);
  void CountUnshared();
  std::shared_ptr<Kept> Find(const std::string& key);
  Table Copy(const Table& table);
  void Keep(Kept& kept, const Table& table);
  bool MakeRoom(std::size_t bytes);

  const std::shared_ptr<Memory> memory_;
  const std::size_t max_table_bytes_;
  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<Kept>> kept_;
  std::uint64_t clock_ = 0;  // counts uses
  TableStoreStats stats_;
};

}  // namespace internal
}  // namespace strobe
