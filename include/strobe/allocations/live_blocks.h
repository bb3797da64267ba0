// LiveBlocks: the sampled blocks that have not been freed. Data plane: no lock, no memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What a sampled block stands for, and the number of the stack that allocated it.
struct LiveBlock {
  std::int64_t objects = 0;
  std::int64_t bytes = 0;
  std::uint32_t stack = 0;

  friend bool operator==(const LiveBlock&, const LiveBlock&) = default;
};

// A hash table of fixed size. A block lies in one of the kProbes entries from its home on. An entry
// belongs to the thread that has changed its address from 0 to kBusy, or from the block's to kBusy.
// Each home counts the blocks that it is the home of, in one byte: most frees need to read no more.
//
// Thread-safe and signal-safe. The caller sees to it that a block's Remove comes after its Add, and
// before its address can be allocated again. All zero bytes are an empty table.
template <unsigned kBits = 16>
class LiveBlocks {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << kBits;
  // At most so many blocks have the same home, and fit its byte.
  static constexpr std::size_t kProbes = 32;

  constexpr LiveBlocks() = default;
  LiveBlocks(const LiveBlocks&) = delete;
  LiveBlocks& operator=(const LiveBlocks&) = delete;

  // False if the block is not in the table.
  [[nodiscard]] STROBE_ALWAYS_INLINE bool MayHold(const void* block) const noexcept {
    return counts_[HomeOf(AddressOf(block))].load(std::memory_order_relaxed) != 0;
  }

  // Returns false, and counts the block, if there is no free entry near its home.
  bool Add(const void* block, const LiveBlock& content) noexcept {
    const std::uintptr_t address = AddressOf(block);
    const std::size_t home = HomeOf(address);
    for (std::size_t i = 0; i < kProbes; ++i) {
      Entry& entry = entries_[(home + i) % kEntries];
      std::uintptr_t none = 0;
      if (entry.address.load(std::memory_order_relaxed) != 0 ||
          !entry.address.compare_exchange_strong(none, kBusy, std::memory_order_acquire))
        continue;
      entry.objects.store(content.objects, std::memory_order_relaxed);
      entry.bytes.store(content.bytes, std::memory_order_relaxed);
      entry.stack.store(content.stack, std::memory_order_relaxed);
      counts_[home].fetch_add(1, std::memory_order_relaxed);
      entry.address.store(address, std::memory_order_release);
      return true;
    }
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Returns what the block stands for; nothing if it is not in the table.
  std::optional<LiveBlock> Remove(const void* block) noexcept {
    const std::uintptr_t address = AddressOf(block);
    if (address == 0) return std::nullopt;  // free entries have this address
    const std::size_t home = HomeOf(address);
    for (std::size_t i = 0; i < kProbes; ++i) {
      Entry& entry = entries_[(home + i) % kEntries];
      if (entry.address.load(std::memory_order_relaxed) == address) return Take(entry, address);
    }
    return std::nullopt;
  }

  // Calls visit(block) for each block that stays in the table during the call.
  template <class Visitor>
  void Visit(Visitor&& visit) const {
    for (const Entry& entry : entries_) {
      const std::uintptr_t address = entry.address.load(std::memory_order_acquire);
      if (address <= kBusy) continue;
      const LiveBlock content = Read(entry);
      if (entry.address.load(std::memory_order_relaxed) == address) visit(content);
    }
  }

  // Removes all blocks, and counts from 0. No Add may be under way.
  void Clear() noexcept {
    for (Entry& entry : entries_) {
      const std::uintptr_t address = entry.address.load(std::memory_order_relaxed);
      if (address > kBusy) static_cast<void>(Take(entry, address));
    }
    refused_.store(0, std::memory_order_relaxed);
  }

  // How many blocks have found no entry since the last Clear.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uintptr_t kBusy = 1;  // no block has this address

  struct Entry {
    std::atomic<std::uintptr_t> address{0};
    std::atomic<std::int64_t> objects{0};
    std::atomic<std::int64_t> bytes{0};
    std::atomic<std::uint32_t> stack{0};
  };
  static_assert(sizeof(Entry) <= 32);

  static std::uintptr_t AddressOf(const void* block) {
    return reinterpret_cast<std::uintptr_t>(block);
  }
  static STROBE_ALWAYS_INLINE std::size_t HomeOf(std::uintptr_t address) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    return static_cast<std::size_t>(std::uint64_t{address} * kSpread >> (64 - kBits));
  }
  // A load of the address that follows comes after these.
  static LiveBlock Read(const Entry& entry) {
    return {.objects = entry.objects.load(std::memory_order_acquire),
            .bytes = entry.bytes.load(std::memory_order_acquire),
            .stack = entry.stack.load(std::memory_order_acquire)};
  }
  std::optional<LiveBlock> Take(Entry& entry, std::uintptr_t address) {
    const std::size_t home = HomeOf(address);
    if (!entry.address.compare_exchange_strong(address, kBusy, std::memory_order_acquire))
      return std::nullopt;
    const LiveBlock content = Read(entry);
    counts_[home].fetch_sub(1, std::memory_order_relaxed);
    entry.address.store(0, std::memory_order_release);
    return content;
  }

  std::array<std::atomic<std::uint8_t>, kEntries> counts_{};
  std::array<Entry, kEntries> entries_{};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
