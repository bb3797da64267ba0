// SharedTables: unwind tables in memory that a program maps to read them, and its worker to write
// them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <memory_resource>
#include <span>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/address.h"
#include "strobe/base/page.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/unwind/rule_cache.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class TableStore;

// Memory that a worker writes, and programs map for reading only: no other process can map it for
// writing. So what lies in it, also pointers, is as the worker has left it. All of it is mapped
// from the beginning, and the file grows with what the worker has put there: so a program that
// locks its memory has no more than that.
//
// A worker makes one for its TableStore, and one for what it shows each program, which lies at the
// same address in both processes, so that an object has the same pointers in both.
class TableMemory {
 public:
  // What a program is shown.
  static constexpr std::size_t kBytes = std::size_t{64} << 20;
  TableMemory() = default;
  TableMemory(TableMemory&& other) noexcept;
  TableMemory& operator=(TableMemory&& other) noexcept;
  // Unmaps it.
  ~TableMemory();

  // In the worker. The descriptor is for the programs. ResourceExhausted if the system refuses.
  // `name` is what /proc shows of it.
  static absl::StatusOr<TableMemory> Create(const char* name, std::size_t bytes);
  // In a program, at any address, or only at `address` if that is not 0; takes over the descriptor.
  // `bytes` is what Create was called with. InvalidArgument if it is no such memory, AlreadyExists
  // if something else is mapped there, ResourceExhausted if the system refuses.
  static absl::StatusOr<TableMemory> Adopt(int descriptor, std::size_t bytes, Address address = 0);

  // In the worker: the first `bytes` can be used from now on. False if the system refuses. The
  // first page always can.
  bool GrowTo(std::size_t bytes);
  [[nodiscard]] std::span<std::byte> bytes() const { return bytes_; }
  [[nodiscard]] Address address() const { return reinterpret_cast<Address>(bytes_.data()); }
  // -1 in a program, which closes it.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // Leaves it mapped for ever.
  void KeepMapped() { bytes_ = {}; }

 private:
  // So much more at a time.
  static constexpr std::size_t kStepBytes = std::size_t{1} << 20;

  std::span<std::byte> bytes_;
  std::size_t file_bytes_ = 0;  // in the worker
  Descriptor descriptor_;
};

// Room for caches of rules, which captures write: in memory that the program maps for writing.
struct SharedCaches {
  static constexpr std::size_t kCaches = 4;

  std::span<std::byte> memory;     // here; kCaches * CacheBytes() of it
  Address address_in_program = 0;  // of the same memory

  // In whole pages.
  static constexpr std::size_t CacheBytes() { return RoundUpToPages(sizeof(RuleCache)); }
};

// Gives out memory of the worker's from the front. What is given back is lost: a pool above reuses
// it.
class FrontResource final : public std::pmr::memory_resource {
 public:
  // Of the pool above: what is larger than that is never reused.
  static constexpr std::pmr::pool_options kPoolOptions{
      .max_blocks_per_chunk = 0, .largest_required_pool_block = std::size_t{1} << 20};

  // `memory` must outlive this object.
  explicit FrontResource(TableMemory& memory) : memory_(memory), left_(memory.bytes()) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override;
  void do_deallocate(void* /*memory*/, std::size_t /*bytes*/, std::size_t /*align*/) override {}
  [[nodiscard]] bool do_is_equal(const memory_resource& other) const noexcept override {
    return this == &other;
  }
  TableMemory& memory_;
  std::span<std::byte> left_;
};

// The store that the tables' blocks are in, and where the program has its memory; 0 if it has not.
struct StoreInProgram {
  std::shared_ptr<const TableStore> store;
  Address address = 0;
};

// Shows tables to a program: in that memory, the list of what belongs to which addresses, and for
// each table an object that leads to its block. A block that is not in the store is copied. In the
// worker; used by one thread at a time.
class SharedTables {
 public:
  using Tables = std::shared_ptr<const UnwindModules>;

  // `discard` makes memory of a cache zero again. `serials`, the upper half of the serials of all
  // copies, is none of the program's or of an earlier worker's.
  SharedTables(TableMemory memory, SharedCaches caches, StoreInProgram store, std::uint64_t serials,
               void (*discard)(void* memory, std::uint64_t bytes));
  ~SharedTables();
  SharedTables(const SharedTables&) = delete;
  SharedTables& operator=(const SharedTables&) = delete;

  // The same tables for captures of the program; nullptr if there is no room. They take their room
  // until the last pointer to them goes. `this` must outlive them.
  Tables Expose(const Tables& tables);

 private:
  // An object in the pool, destroyed with its last pointer. `source` lives as long.
  template <class T, class Source, class... Arguments>
  std::shared_ptr<const T> Make(const Source& source, Arguments&&... arguments);
  std::shared_ptr<const UnwindTable> CopyOf(const std::shared_ptr<const UnwindTable>& table);
  std::shared_ptr<const std::byte> BlockOf(const UnwindTable& table);
  // The cache in the program's memory for that of the tables; 0 if there is none left.
  Address CacheFor(const Tables& tables);

  struct Cache {
    std::weak_ptr<RuleCache> source;
  };

  TableMemory memory_;
  const SharedCaches caches_;
  const StoreInProgram store_;
  void (*const discard_)(void* memory, std::uint64_t bytes);
  FrontResource front_;
  std::pmr::unsynchronized_pool_resource pool_;
  std::unordered_map<const UnwindTable*, std::weak_ptr<const UnwindTable>> copies_;
  std::array<Cache, SharedCaches::kCaches> cache_uses_;
  std::uint64_t next_serial_;
};

}  // namespace internal
}  // namespace strobe
