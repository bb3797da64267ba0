// LiveBlocks: the sampled blocks that have not been freed. Data plane: no lock, no memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/allocations/live_entries.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/number_index.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Which blocks are live. Their entries lie where Use says; free ones are used again: few blocks
// take little memory. An index finds them by their addresses. A filter counts the blocks of each of
// its homes in one byte: most frees need to read no more.
//
// Thread-safe and signal-safe. The caller sees to it that a block's Remove comes after its Add, and
// before its address can be allocated again. All zero bytes are an empty table without entries.
template <unsigned kBits = 16>
class LiveBlocks {
 public:
  using Entries = LiveEntries<kBits>;
  static constexpr std::size_t kEntries = Entries::kEntries;
  // Beyond it, a block is refused.
  static constexpr std::int64_t kMaxObjects = Entries::kMaxObjects;

  constexpr LiveBlocks() = default;
  LiveBlocks(const LiveBlocks&) = delete;
  LiveBlocks& operator=(const LiveBlocks&) = delete;

  // Forgets all blocks: MayHold is false. What runs meanwhile is undone by the Use that follows.
  void Hide() noexcept {
    mask_.store(0, std::memory_order_release);
    const std::size_t homes = is_used() ? MaskOf(level_.load(std::memory_order_relaxed)) + 1 : 0;
    for (std::size_t i = 0; i < homes; ++i) filter_[i].store(0, std::memory_order_relaxed);
  }
  // From now on the blocks lie in `entries`, which are cleared. No other call may be under way, but
  // for MayHold.
  void Use(Entries& entries) noexcept {
    Hide();
    index_.Clear();
    level_.store(0, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
    entries.Clear();
    entries_.store(&entries, std::memory_order_release);
  }
  // True after a Use.
  [[nodiscard]] bool is_used() const { return entries_.load(std::memory_order_relaxed) != nullptr; }

  // False if the block is not in the table.
  [[nodiscard]] STROBE_ALWAYS_INLINE bool MayHold(const void* block) const noexcept {
    const std::size_t home = FilterBitsOf(AddressOf(block)) & mask_.load(std::memory_order_acquire);
    return filter_[home].load(std::memory_order_relaxed) != 0;
  }

  // Returns false, and counts the block, if there is no room for it.
  bool Add(const void* block, const LiveBlock& content) noexcept {
    const std::uintptr_t address = AddressOf(block);
    const bool fits = is_used() && content.objects <= kMaxObjects && (address & kLevelFlags) == 0 &&
                      CountFirst(address);
    const auto number = fits ? entries().Add(address, content) : std::optional<std::uint32_t>();
    if (number) {
      CountInFurtherLevels(*number);
      if (index_.Add(HashOf(address), *number)) return true;
      static_cast<void>(Take(*number, address));
    } else if (fits) {
      CountOf(0, address).fetch_sub(1, std::memory_order_relaxed);
    }
    refused_.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Returns what the block stands for; nothing if it is not in the table, or may_remove() is false
  // for a block that is.
  std::optional<LiveBlock> Remove(const void* block) noexcept {
    return Remove(block, [] { return true; });
  }
  template <class MayRemove>
  std::optional<LiveBlock> Remove(const void* block, const MayRemove& may_remove) noexcept {
    const std::uintptr_t address = AddressOf(block);
    if (address == 0 || !is_used()) return std::nullopt;  // free entries have this address
    Entries& own = entries();
    const std::optional<std::uint32_t> number =
        index_.Find(HashOf(address), [&](std::uint32_t candidate) {
          return BlockOf(own[candidate].address.load(std::memory_order_relaxed)) == address;
        });
    return number && may_remove() ? Take(*number, address) : std::nullopt;
  }

  // See LiveEntries.
  template <class Visitor>
  void Visit(Visitor&& visit) const {
    const Entries* const own = entries_.load(std::memory_order_acquire);
    if (own != nullptr) own->Visit(visit);
  }

  // Removes all blocks, and the peak, and counts from 0. No Add may be under way.
  void Clear() noexcept {
    for (std::size_t i = 0; is_used() && i < entries().used(); ++i) {
      const std::uintptr_t address = BlockOf(entries()[i].address.load(std::memory_order_relaxed));
      if (address != 0) static_cast<void>(Take(static_cast<std::uint32_t>(i), address));
    }
    if (is_used()) entries().ForgetPeak();
    refused_.store(0, std::memory_order_relaxed);
  }

  // How many blocks have found no room since the last Clear.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // See LiveEntries.
  [[nodiscard]] std::uint64_t peak_dropped() const { return is_used() ? entries().dropped() : 0; }

 private:
  // The filter grows with the number of blocks. A level has four times the homes of the one before,
  // and begins when a quarter of that one's homes, nearly, have a block. Blocks are counted in the
  // first level, and in each further one that has begun. MayHold reads the last level in which all
  // are counted. Levels overlap, so a home may count blocks of another one's: that does no harm.
  static constexpr unsigned kLevels = 3;
  static constexpr unsigned kMaxFilterBits = 18;
  static constexpr unsigned FilterBits(unsigned level) {
    return kMaxFilterBits - 2 * (kLevels - 1 - level);
  }
  static constexpr std::size_t MaskOf(unsigned level) {
    return (std::size_t{1} << FilterBits(level)) - 1;
  }
  // Entries in use.
  static constexpr std::size_t BeginOf(unsigned level) { return 7 << (FilterBits(level - 1) - 5); }
  // Blocks of a home of the first level, and so of each further one. Their sum fits a byte.
  static constexpr std::uint8_t kMaxCount = 80;
  static_assert(kLevels * kMaxCount < 256);
  static constexpr std::uintptr_t kLevelFlags = Entries::kFlags;
  static_assert(kLevelFlags == (1 << (kLevels - 1)) - 1);
  static constexpr std::uintptr_t FlagOf(unsigned level) { return 1 << (level - 1); }
  static constexpr std::uintptr_t BlockOf(std::uintptr_t address) {
    return Entries::BlockOf(address);
  }
  using Entry = typename Entries::Entry;
  [[nodiscard]] Entries& entries() const { return *entries_.load(std::memory_order_acquire); }

  static std::uintptr_t AddressOf(const void* block) {
    return reinterpret_cast<std::uintptr_t>(block);
  }
  static STROBE_ALWAYS_INLINE std::uint64_t HashOf(std::uintptr_t address) {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    return std::uint64_t{address} * kSpread;
  }
  // Blocks that lie side by side have homes side by side: what a program uses at a time is in few
  // cache lines. No multiplication: it would take half of the time of a free.
  static STROBE_ALWAYS_INLINE std::size_t FilterBitsOf(std::uintptr_t address) {
    return static_cast<std::size_t>(address >> 4 ^ address >> 17);
  }
  std::atomic<std::uint8_t>& CountOf(unsigned level, std::uintptr_t block) {
    return filter_[FilterBitsOf(block) & MaskOf(level)];
  }
  // Returns false if the block's home in the first level is full.
  bool CountFirst(std::uintptr_t block) noexcept {
    ShowLevel(0);
    std::atomic<std::uint8_t>& count = CountOf(0, block);
    std::uint8_t now = count.load(std::memory_order_relaxed);
    while (now < kMaxCount)
      if (count.compare_exchange_weak(now, now + 1, std::memory_order_relaxed)) return true;
    return false;
  }
  void CountInFurtherLevels(std::uint32_t number) noexcept {
    for (unsigned level = 1; level < kLevels; ++level) {
      if (number == BeginOf(level)) BeginLevel(level);
      if (level <= level_.load(std::memory_order_seq_cst)) CountIn(level, entries()[number]);
    }
  }
  // Either this sees a block's entry, or the block's thread sees that the level has begun.
  void BeginLevel(unsigned level) noexcept {
    Raise(level_, level);
    for (std::size_t i = 0; i < entries().used(); ++i) CountIn(level, entries()[i]);
    ShowLevel(level);
  }
  void ShowLevel(unsigned level) noexcept { Raise(mask_, MaskOf(level)); }
  // Counts an entry's block in a level, unless it is counted there.
  void CountIn(unsigned level, Entry& entry) noexcept {
    std::uintptr_t address = entry.address.load(std::memory_order_seq_cst);
    while (address != 0 && (address & FlagOf(level)) == 0) {
      std::atomic<std::uint8_t>& count = CountOf(level, BlockOf(address));
      count.fetch_add(1, std::memory_order_relaxed);
      if (entry.address.compare_exchange_strong(address, address | FlagOf(level))) return;
      count.fetch_sub(1, std::memory_order_relaxed);
    }
  }
  template <class Number>
  static void Raise(std::atomic<Number>& number, Number to) noexcept {
    Number now = number.load(std::memory_order_relaxed);
    while (now < to && !number.compare_exchange_weak(now, to)) {
    }
  }

  // The entry belongs to the thread that has changed its address to 0.
  std::optional<LiveBlock> Take(std::uint32_t number, std::uintptr_t block) noexcept {
    Entry& entry = entries()[number];
    std::uintptr_t address = block;
    while (!entry.address.compare_exchange_weak(address, 0)) {
      if (BlockOf(address) != block) return std::nullopt;
    }
    index_.Remove(HashOf(block), number);
    CountOf(0, block).fetch_sub(1, std::memory_order_relaxed);
    for (unsigned level = 1; level < kLevels; ++level)
      if ((address & FlagOf(level)) != 0)
        CountOf(level, block).fetch_sub(1, std::memory_order_relaxed);
    return entries().Remove(number);
  }

  // The filter, and the index behind it, begin at a page: their first levels are whole pages.
  alignas(4096) std::array<std::atomic<std::uint8_t>, MaskOf(kLevels - 1) + 1> filter_{};
  NumberIndex<kBits> index_;
  std::atomic<std::size_t> mask_{0};  // of the level that MayHold reads; 0 before the first block
  std::atomic<unsigned> level_{0};    // the last that has begun
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<Entries*> entries_{nullptr};
};

}  // namespace internal
}  // namespace strobe
