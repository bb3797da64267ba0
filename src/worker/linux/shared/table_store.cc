#include "strobe/worker/shared/table_store.h"

#include <algorithm>
#include <cstring>
#include <memory_resource>
#include <new>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"
#include "strobe/worker/shared/shared_tables.h"

namespace strobe::internal {
namespace {

// Empty for code that has no image, or none that can be told from another.
std::string KeyOf(const Module& module, std::size_t chunk) {
  if (module.build_id.empty() && module.file_version == 0) return "";
  return absl::StrCat(module.build_id, ":", module.build_id.empty() ? module.path : "", ":",
                      module.file_version, ":", module.file_offset, ":",
                      module.limit - module.start, ":", chunk);
}

}  // namespace

// The memory, and the places of blocks in it. Lives as long as a block.
class TableStore::Memory : public std::enable_shared_from_this<Memory> {
 public:
  explicit Memory(TableMemory memory)
      : memory_(std::move(memory)), front_(memory_), pool_(FrontResource::kPoolOptions, &front_) {}

  // A copy of the bytes; nullptr if there is no room.
  std::shared_ptr<const std::byte> Copy(std::span<const std::byte> bytes) {
    std::byte* place = nullptr;
    static_cast<void>(HasMemoryFor([&] {
      const std::lock_guard lock(mutex_);
      place = static_cast<std::byte*>(pool_.allocate(bytes.size(), kCacheLineBytes));
    }));
    if (place == nullptr) return nullptr;
    std::memcpy(place, bytes.data(), bytes.size());
    // If the pointer finds no memory, it frees the place itself.
    return {place, [memory = shared_from_this(), size = bytes.size()](std::byte* block) {
              const std::lock_guard lock(memory->mutex_);
              memory->pool_.deallocate(block, size, kCacheLineBytes);
            }};
  }

  [[nodiscard]] std::span<std::byte> bytes() const { return memory_.bytes(); }
  [[nodiscard]] int descriptor() const { return memory_.descriptor(); }

 private:
  TableMemory memory_;
  std::mutex mutex_;
  FrontResource front_;
  std::pmr::unsynchronized_pool_resource pool_;
};

absl::StatusOr<std::shared_ptr<TableStore>> TableStore::Create(std::size_t max_table_bytes) {
  absl::StatusOr<TableMemory> memory = TableMemory::Create("strobe-table-store", kMemoryBytes);
  if (!memory.ok()) return memory.status();
  return std::shared_ptr<TableStore>(
      new TableStore(std::make_shared<Memory>(*std::move(memory)), max_table_bytes));
}

TableStore::TableStore(std::shared_ptr<Memory> memory, std::size_t max_table_bytes)
    : memory_(std::move(memory)), max_table_bytes_(max_table_bytes) {}
TableStore::~TableStore() = default;

int TableStore::descriptor() const { return memory_->descriptor(); }

std::optional<std::size_t> TableStore::OffsetOf(const UnwindTable& table) const {
  const std::span<std::byte> all = memory_->bytes();
  const std::byte* const block = table.block().data();
  if (std::less<>()(block, all.data()) || !std::less<>()(block, all.data() + all.size()))
    return std::nullopt;
  return static_cast<std::size_t>(block - all.data());
}

TableStoreStats TableStore::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

void TableStore::CountUnshared() {
  const std::lock_guard lock(mutex_);
  ++stats_.unshared;
}

std::shared_ptr<TableStore::Kept> TableStore::Find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Kept>& kept = kept_[key];
  if (kept == nullptr) kept = std::make_shared<Kept>();
  kept->last_use = ++clock_;
  return kept;
}

TableStore::Table TableStore::Share(const Module& module, std::size_t chunk,
                                    const CfiModules::BuildTable& build) {
  const std::string key = KeyOf(module, chunk);
  if (key.empty()) {
    CountUnshared();
    return build().table;
  }
  const std::shared_ptr<Kept> kept = Find(key);
  const std::lock_guard building(kept->building);
  {
    const std::lock_guard lock(mutex_);
    if (kept->table != nullptr) {
      ++stats_.found;
      return kept->table;
    }
  }
  CfiModules::BuiltTable built = build();
  const Table copy = built.is_whole ? Copy(built.table) : nullptr;
  const std::lock_guard lock(mutex_);
  ++stats_.built;
  if (copy == nullptr) {
    ++stats_.unshared;
    return built.table;
  }
  kept->table = copy;
  ++stats_.tables;
  stats_.bytes += copy->memory_bytes();
  return copy;
}

// In the memory. One that has no block is as good where it is.
TableStore::Table TableStore::Copy(const Table& table) {
  const std::span<const std::byte> block = table->block();
  if (!MakeRoom(block.size())) return nullptr;
  if (block.empty()) return table;
  std::shared_ptr<const std::byte> copy = memory_->Copy(block);
  if (copy == nullptr) {
    // The room that is left is in pieces.
    static_cast<void>(MakeRoom(max_table_bytes_));
    copy = memory_->Copy(block);
  }
  return copy == nullptr ? nullptr : std::make_shared<const UnwindTable>(*table, std::move(copy));
}

// Drops tables that no program uses, those used least recently first, until there is room for so
// many bytes more, and for one table. False if there is none.
bool TableStore::MakeRoom(std::size_t bytes) {
  std::vector<Table> dropped;  // freed without the lock
  const std::lock_guard lock(mutex_);
  const auto has_room = [&] {
    return stats_.bytes + bytes <= max_table_bytes_ && kept_.size() <= kMaxTables;
  };
  if (has_room()) return true;
  using Item = decltype(kept_)::iterator;
  std::vector<Item> unused;
  for (auto item = kept_.begin(); item != kept_.end(); ++item) {
    const Kept& kept = *item->second;
    // One that is being built has another user of its entry.
    if (item->second.use_count() != 1) continue;
    if (kept.table == nullptr || kept.table.use_count() == 1 || kept.table->block().empty())
      unused.push_back(item);
  }
  std::ranges::sort(unused, {}, [](const Item& item) { return item->second->last_use; });
  for (const Item& item : unused) {
    if (has_room()) break;
    if (Table& table = item->second->table; table != nullptr) {
      ++stats_.evicted;
      --stats_.tables;
      stats_.bytes -= table->memory_bytes();
      dropped.push_back(std::move(table));
    }
    kept_.erase(item);
  }
  return stats_.bytes + bytes <= max_table_bytes_ && kept_.size() <= kMaxTables;
}

}  // namespace strobe::internal
