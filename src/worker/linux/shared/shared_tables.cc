#include "strobe/worker/shared/shared_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/page.h"
#include "strobe/worker/shared/table_store.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010  // Linux 5.1
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000  // Linux 4.17
#endif

namespace strobe::internal {
namespace {

// No program maps anything below: a pointer that is null may not lead there.
constexpr Address kLeastAddress = 1 << 20;
// Where the memory lies: anywhere in that range, by chance. So a worker of many programs finds the
// place free, also where the system gives all of them the same addresses.
constexpr Address kFirstPlace = Address{1} << 40;
constexpr Address kPlaces = Address{1} << 45;

void* RandomPlace() {
  Address random = 0;
  if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random)) return nullptr;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): only a hint
  return reinterpret_cast<void*>(kFirstPlace + random % (kPlaces / kPageBytes) * kPageBytes);
}

// Copies that have gone stay listed up to this many.
constexpr std::size_t kMaxStaleCopies = 4096;

}  // namespace

TableMemory::TableMemory(TableMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})),
      file_bytes_(other.file_bytes_),
      descriptor_(std::move(other.descriptor_)) {}
TableMemory& TableMemory::operator=(TableMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(file_bytes_, other.file_bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}
TableMemory::~TableMemory() {
  if (!bytes_.empty()) munmap(bytes_.data(), bytes_.size());
}

absl::StatusOr<TableMemory> TableMemory::Create(const char* name, std::size_t bytes) {
  TableMemory made;
  made.descriptor_ = Descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  const int descriptor = made.descriptor();
  void* memory = MAP_FAILED;
  if (descriptor >= 0 && ftruncate(descriptor, kPageBytes) == 0)
    memory = mmap(RandomPlace(), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (memory != MAP_FAILED) {
    made.bytes_ = {static_cast<std::byte*>(memory), bytes};
    made.file_bytes_ = kPageBytes;
    madvise(memory, bytes, MADV_DONTDUMP);
  }
  // Before anybody else has the descriptor: the seal leaves mappings alone that can write already.
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
  if (memory != MAP_FAILED && fcntl(descriptor, F_ADD_SEALS, kSeals) == 0) return made;
  return absl::ResourceExhaustedError(
      absl::StrCat("no memory for tables to share with programs: ", std::strerror(errno)));
}

bool TableMemory::GrowTo(std::size_t bytes) {
  if (bytes <= file_bytes_) return true;
  const std::size_t wanted =
      std::min((bytes + kStepBytes - 1) / kStepBytes * kStepBytes, bytes_.size());
  if (bytes > wanted || ftruncate(descriptor(), static_cast<off_t>(wanted)) != 0) return false;
  file_bytes_ = wanted;
  return true;
}

absl::StatusOr<TableMemory> TableMemory::Adopt(int received, std::size_t bytes, Address address) {
  const Descriptor owner(received);
  const int descriptor = owner.get();
  const int seals = fcntl(descriptor, F_GET_SEALS);
  struct stat info {};
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(descriptor, &info) != 0 ||
      info.st_size <= 0 || address % kPageBytes != 0 || (address != 0 && address < kLeastAddress))
    return absl::InvalidArgumentError("this is no memory for tables");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): where the worker has mapped it
  void* const wanted = reinterpret_cast<void*>(address);
  const int flags = MAP_SHARED | (address != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* const memory = mmap(wanted, bytes, PROT_READ, flags, descriptor, 0);
  if (memory == MAP_FAILED) {
    if (errno == EEXIST) return absl::AlreadyExistsError("something is where the tables should be");
    return absl::ResourceExhaustedError(
        absl::StrCat("the memory for tables cannot be mapped: ", std::strerror(errno)));
  }
  madvise(memory, bytes, MADV_DONTDUMP);
  TableMemory made;
  made.bytes_ = {static_cast<std::byte*>(memory), bytes};
  // A system before Linux 4.17 takes the address for a hint.
  if (address != 0 && memory != wanted)
    return absl::AlreadyExistsError("something is where the tables should be");
  return made;
}

void* FrontResource::do_allocate(std::size_t bytes, std::size_t alignment) {
  void* at = left_.data();
  std::size_t room = left_.size();
  if (std::align(alignment, bytes, at, room) == nullptr) throw std::bad_alloc();
  const std::span<std::byte> left{static_cast<std::byte*>(at) + bytes, room - bytes};
  if (!memory_.GrowTo(memory_.bytes().size() - left.size())) throw std::bad_alloc();
  left_ = left;
  return at;
}

SharedTables::SharedTables(TableMemory memory, SharedCaches caches, StoreInProgram store,
                           std::uint64_t serials,
                           void (*discard)(void* memory, std::uint64_t bytes))
    : memory_(std::move(memory)),
      caches_(caches),
      store_(std::move(store)),
      discard_(discard),
      front_(memory_),
      pool_(FrontResource::kPoolOptions, &front_),
      next_serial_(serials << 32) {}
SharedTables::~SharedTables() = default;

template <class T, class Source, class... Arguments>
std::shared_ptr<const T> SharedTables::Make(const Source& source, Arguments&&... arguments) {
  void* const place = pool_.allocate(sizeof(T), alignof(T));
  T* object = nullptr;
  const auto destroy = [this, source](T* made) {
    made->~T();
    pool_.deallocate(made, sizeof(T), alignof(T));
  };
  if (!HasMemoryFor([&] { object = new (place) T(std::forward<Arguments>(arguments)...); })) {
    pool_.deallocate(place, sizeof(T), alignof(T));
    throw std::bad_alloc();
  }
  return std::shared_ptr<T>(object, destroy);
}

std::shared_ptr<const UnwindTable> SharedTables::CopyOf(
    const std::shared_ptr<const UnwindTable>& table) {
  if (table == nullptr) return nullptr;
  if (const auto found = copies_.find(table.get()); found != copies_.end()) {
    if (std::shared_ptr<const UnwindTable> copy = found->second.lock()) return copy;
  }
  if (copies_.size() >= kMaxStaleCopies)
    std::erase_if(copies_, [](const auto& copy) { return copy.second.expired(); });
  std::shared_ptr<const UnwindTable> copy = Make<UnwindTable>(table, *table, BlockOf(*table));
  copies_[table.get()] = copy;
  return copy;
}

// Where the program reads the table's block.
std::shared_ptr<const std::byte> SharedTables::BlockOf(const UnwindTable& table) {
  const std::span<const std::byte> block = table.block();
  const std::optional<std::size_t> offset =
      store_.address != 0 ? store_.store->OffsetOf(table) : std::nullopt;
  if (offset) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the program, not of this process
    return {std::shared_ptr<void>(), reinterpret_cast<const std::byte*>(store_.address + *offset)};
  }
  if (block.empty()) return nullptr;
  auto* const copy = static_cast<std::byte*>(pool_.allocate(block.size(), kCacheLineBytes));
  std::memcpy(copy, block.data(), block.size());
  return {copy, [this, bytes = block.size()](std::byte* made) {
            pool_.deallocate(made, bytes, kCacheLineBytes);
          }};
}

Address SharedTables::CacheFor(const Tables& tables) {
  const std::shared_ptr<RuleCache>& source = tables->shared_cache();
  constexpr std::size_t kBytes = SharedCaches::CacheBytes();
  Cache* unused = nullptr;
  for (Cache& cache : cache_uses_) {
    const std::shared_ptr<RuleCache> user = cache.source.lock();
    const auto place = static_cast<std::size_t>(&cache - cache_uses_.data()) * kBytes;
    if (user == source) return caches_.address_in_program + place;
    if (user == nullptr) unused = &cache;
  }
  if (unused == nullptr) return 0;
  const auto place = static_cast<std::size_t>(unused - cache_uses_.data()) * kBytes;
  discard_(caches_.memory.data() + place, kBytes);  // no capture reads it any more
  unused->source = source;
  return caches_.address_in_program + place;
}

SharedTables::Tables SharedTables::Expose(const Tables& tables) {
  Tables exposed;
  static_cast<void>(HasMemoryFor([&] {
    const Address cache = CacheFor(tables);
    if (cache == 0) return;
    std::pmr::vector<UnwindModules::Entry> entries(&pool_);
    entries.reserve(tables->entries().size());
    for (const UnwindModules::Entry& entry : tables->entries())
      entries.push_back({entry.start, entry.limit, CopyOf(entry.table)});
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address of the program, not of this process
    const std::shared_ptr<RuleCache> programs(std::shared_ptr<void>(),
                                              reinterpret_cast<RuleCache*>(cache));
    exposed = Make<UnwindModules>(tables, std::move(entries), tables->is_complete(), programs,
                                  ++next_serial_);
  }));
  return exposed;
}

}  // namespace strobe::internal
