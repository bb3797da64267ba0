// LiveEntries: the sampled blocks that are live, and those that were when most bytes were. Data
// plane: no lock, no memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What a sampled block stands for, and the number of the stack that allocated it.
struct LiveBlock {
  std::int64_t objects = 0;
  std::int64_t bytes = 0;
  std::uint32_t stack = 0;
  std::int64_t birth_ns = 0;  // of the monotonic clock; 0 if it is not known

  friend bool operator==(const LiveBlock&, const LiveBlock&) = default;
};

// An array that is filled from its front. A block of bytes without addresses, of which all zero
// ones are an empty array: it may lie in memory that another process reads. That process may find
// anything in it.
//
// The peak is the time at which the sum of the bytes was largest. Its blocks are not copied. Peaks
// are counted, and an entry notes the number at its birth and at its death:
//
//   bytes    .--.    .-           peak p has what was born before p was counted,
//          .'    \__'             and had not died then: it lives, or has died since
//   peak   12 3333333 45
//
// So an entry that has died stays as long as it is a part of the last peak. Its place is then used
// again. Of what other threads allocate and free at the very time of a peak, the peak may have a
// block too few or too many.
//
// Thread-safe and signal-safe. All zero bytes are an empty array.
template <unsigned kBits = 16>
class LiveEntries {
 public:
  static constexpr std::size_t kEntries = std::size_t{1} << kBits;
  static constexpr unsigned kStackBits = 20;
  // Beyond it, a block cannot be packed.
  static constexpr std::int64_t kMaxObjects = (std::int64_t{1} << (64 - kStackBits)) - 1;
  // Beside an entry's address: for the user.
  static constexpr std::uintptr_t kFlags = 3;
  static constexpr std::uintptr_t BlockOf(std::uintptr_t address) { return address & ~kFlags; }

  class Entry {
   public:
    std::atomic<std::uintptr_t> address{0};  // and flags; 0 if the block is not live

    // Who sees another block's content also sees, in a later load, that the address or the life has
    // changed; but not if the same address has come back to the same entry meanwhile.
    [[nodiscard]] LiveBlock Read() const {
      const std::uint64_t packed = objects_and_stack_.load(std::memory_order_acquire);
      return {.objects = static_cast<std::int64_t>(packed >> kStackBits),
              .bytes = bytes_.load(std::memory_order_acquire),
              .stack = static_cast<std::uint32_t>(packed & ((1U << kStackBits) - 1)),
              .birth_ns = birth_or_next_.load(std::memory_order_acquire)};
    }

   private:
    friend class LiveEntries;
    void Write(const LiveBlock& block) {
      objects_and_stack_.store(
          static_cast<std::uint64_t>(block.objects) << kStackBits | block.stack,
          std::memory_order_release);
      bytes_.store(block.bytes, std::memory_order_release);
      birth_or_next_.store(block.birth_ns, std::memory_order_release);
    }

    std::atomic<std::int64_t> bytes_{0};
    std::atomic<std::uint64_t> objects_and_stack_{0};
    std::atomic<std::int64_t> birth_or_next_{0};  // the next free entry's number plus 1
    // The number of the peak at birth, and in the upper half that at death. 0 if the entry is free.
    std::atomic<std::uint64_t> life_{0};
  };
  static_assert(sizeof(Entry) <= 40);

  Entry& operator[](std::size_t number) { return entries_[number]; }
  // How many entries have ever been used.
  [[nodiscard]] std::size_t used() const {
    return std::min(used_.load(std::memory_order_relaxed), kEntries);
  }

  // The number of an entry for the block, at an address that is not 0; nothing if there is no room.
  // If the entries are full, a part of the peak gives way.
  std::optional<std::uint32_t> Add(std::uintptr_t address, const LiveBlock& block) noexcept {
    std::optional<std::uint32_t> number = TakeFree();
    if (!number) number = TakeDead(kStepsBeforeNew, false);
    if (!number) number = TakeNew();
    if (!number) number = TakeDead(kStepsIfFull, true);
    if (!number) return std::nullopt;
    Entry& entry = entries_[*number];
    entry.Write(block);
    entry.life_.store(peak(), std::memory_order_release);
    entry.address.store(address, std::memory_order_seq_cst);
    CountBytes(block.bytes);
    return number;
  }

  // Returns what the block stood for. By the thread that has changed the entry's address to 0.
  LiveBlock Remove(std::uint32_t number) noexcept {
    Entry& entry = entries_[number];
    const LiveBlock block = entry.Read();
    live_bytes_.fetch_sub(block.bytes, std::memory_order_relaxed);
    const std::uint64_t birth = entry.life_.load(std::memory_order_relaxed);
    const std::uint64_t now = peak();
    const bool is_of_peak = birth < now;
    if (is_of_peak && (used() < kEntries || HasFree())) {
      dead_.fetch_add(1, std::memory_order_relaxed);
      entry.life_.store(birth | now << kDeathShift, std::memory_order_release);
    } else {  // the last place is for what comes
      if (is_of_peak) CountDropped(block.bytes);
      GiveFree(number);
    }
    return block;
  }

  // Forgets the peak: the next one is what is live then. No Add may be under way.
  void ForgetPeak() noexcept {
    peak_.fetch_add(1, std::memory_order_acq_rel);
    max_bytes_.store(0, std::memory_order_relaxed);
    for (std::size_t i = 0; i < used() && dead_.load(std::memory_order_relaxed) > 0; ++i)
      if (TakeDeadAt(i, false)) GiveFree(static_cast<std::uint32_t>(i));
    dropped_.store(0, std::memory_order_relaxed);
  }
  // Removes all, while no other call is under way.
  void Clear() noexcept {
    for (std::size_t i = 0; i < used(); ++i) {
      entries_[i].address.store(0, std::memory_order_relaxed);
      entries_[i].life_.store(0, std::memory_order_relaxed);
    }
    for (std::atomic<std::uint64_t>* const number : {&used_, &free_, &dead_, &dropped_, &hand_})
      number->store(0, std::memory_order_relaxed);
    live_bytes_.store(0, std::memory_order_relaxed);
    max_bytes_.store(0, std::memory_order_relaxed);
  }

  // Calls visit(block, is_live, is_of_peak) for each block of which one is true, and that stays in
  // the array during the call.
  template <class Visitor>
  void Visit(Visitor&& visit) const {
    const std::uint64_t now = peak();
    const std::size_t end = used();
    for (std::size_t i = 0; i < end; ++i) {
      const Entry& entry = entries_[i];
      const std::uint64_t life = entry.life_.load(std::memory_order_acquire);
      const std::uintptr_t address = BlockOf(entry.address.load(std::memory_order_acquire));
      const bool is_live = address != 0;
      const bool is_of_peak = IsOfPeak(life, now);
      if (!is_live && !is_of_peak) continue;
      const LiveBlock content = entry.Read();
      if (BlockOf(entry.address.load(std::memory_order_relaxed)) != address) continue;
      if (entry.life_.load(std::memory_order_relaxed) == life) visit(content, is_live, is_of_peak);
    }
  }

  // Blocks of the peak that have given way since the last Clear.
  [[nodiscard]] std::uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }

 private:
  static constexpr unsigned kDeathShift = 32;
  static constexpr std::int64_t kTornPart = 16;  // what part of a peak may be missing unnoticed
  // How many entries are looked at for one of an earlier peak before a new one is used: the array
  // has few more entries than it needs. And for any that has died, if all are used.
  static constexpr std::size_t kStepsBeforeNew = 16;
  static constexpr std::size_t kStepsIfFull = 256;

  // Never 0, so that no life is.
  [[nodiscard]] std::uint64_t peak() const { return peak_.load(std::memory_order_acquire) + 1; }
  static bool IsOfPeak(std::uint64_t life, std::uint64_t peak) {
    const std::uint64_t birth = life & ((std::uint64_t{1} << kDeathShift) - 1);
    const std::uint64_t death = life >> kDeathShift;
    return birth != 0 && birth < peak && (death == 0 || death >= peak);
  }
  void CountBytes(std::int64_t bytes) noexcept {
    const std::int64_t before = live_bytes_.fetch_add(bytes, std::memory_order_relaxed);
    if (before > INT64_MAX - bytes) return;  // no program has as much
    const std::int64_t live = before + bytes;
    std::int64_t max = max_bytes_.load(std::memory_order_relaxed);
    while (live > max) {
      if (!max_bytes_.compare_exchange_weak(max, live, std::memory_order_relaxed)) continue;
      peak_.fetch_add(1, std::memory_order_acq_rel);
      // If this thread did not run in between, the peak is what is left: the next one may be less.
      max = live;
      const std::int64_t left = live_bytes_.load(std::memory_order_relaxed);
      if (left < live - live / kTornPart) max_bytes_.compare_exchange_strong(max, left);
      return;
    }
  }
  // A part of the peak has given way: the rest is less.
  void CountDropped(std::int64_t bytes) noexcept {
    dropped_.fetch_add(1, std::memory_order_relaxed);
    max_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

  // The number of an entry that was never used.
  std::optional<std::uint32_t> TakeNew() noexcept {
    if (used() == kEntries) return std::nullopt;
    const std::size_t number = used_.fetch_add(1, std::memory_order_relaxed);
    if (number >= kEntries) return std::nullopt;
    return static_cast<std::uint32_t>(number);
  }
  // One that has died, and is not of the peak unless that may be; looks at so many.
  std::optional<std::uint32_t> TakeDead(std::size_t steps, bool may_be_of_peak) noexcept {
    const std::size_t end = std::max<std::size_t>(used(), 1);
    for (std::size_t i = 0; i < steps && dead_.load(std::memory_order_relaxed) > 0; ++i) {
      const std::size_t number = hand_.fetch_add(1, std::memory_order_relaxed) % end;
      if (TakeDeadAt(number, may_be_of_peak)) return static_cast<std::uint32_t>(number);
    }
    return std::nullopt;
  }
  bool TakeDeadAt(std::size_t number, bool may_be_of_peak) noexcept {
    std::uint64_t life = entries_[number].life_.load(std::memory_order_relaxed);
    if (life >> kDeathShift == 0) return false;
    const bool is_of_peak = IsOfPeak(life, peak());
    if (is_of_peak && !may_be_of_peak) return false;
    const std::int64_t bytes = entries_[number].Read().bytes;
    if (!entries_[number].life_.compare_exchange_strong(life, 0, std::memory_order_acq_rel))
      return false;
    dead_.fetch_sub(1, std::memory_order_relaxed);
    if (is_of_peak) CountDropped(bytes);
    return true;
  }

  // Free entries are a list. The upper half of its head counts the changes: a thread that was
  // interrupted in TakeFree does not take the list for the one that it was.
  static constexpr std::uint64_t kChange = std::uint64_t{1} << 32;
  static std::uint64_t Head(std::uint64_t old, std::int64_t first) {
    return ((old + kChange) & ~(kChange - 1)) | static_cast<std::uint32_t>(first);
  }
  std::optional<std::uint32_t> TakeFree() noexcept {
    std::uint64_t head = free_.load(std::memory_order_acquire);
    while (static_cast<std::uint32_t>(head) != 0) {
      const std::uint32_t number = static_cast<std::uint32_t>(head) - 1;
      const std::int64_t next = entries_[number].birth_or_next_.load(std::memory_order_relaxed);
      if (free_.compare_exchange_weak(head, Head(head, next), std::memory_order_acquire))
        return number;
    }
    return std::nullopt;
  }
  [[nodiscard]] bool HasFree() const {
    return static_cast<std::uint32_t>(free_.load(std::memory_order_relaxed)) != 0;
  }
  void GiveFree(std::uint32_t number) noexcept {
    entries_[number].life_.store(0, std::memory_order_release);
    std::uint64_t head = free_.load(std::memory_order_relaxed);
    do {
      entries_[number].birth_or_next_.store(static_cast<std::uint32_t>(head),
                                            std::memory_order_release);
    } while (!free_.compare_exchange_weak(head, Head(head, std::int64_t{number} + 1),
                                          std::memory_order_release));
  }

  std::atomic<std::uint64_t> used_{0};  // entries, and the attempts to have one more
  std::atomic<std::uint64_t> free_{0};  // the first free entry's number plus 1; 0 if there is none
  std::atomic<std::uint64_t> dead_{0};  // entries whose blocks have died, and that are not free
  std::atomic<std::uint64_t> dropped_{0};
  std::atomic<std::uint64_t> hand_{0};  // the next entry that TakeDead looks at, of any number
  std::atomic<std::uint64_t> peak_{0};  // how many there were
  std::atomic<std::int64_t> live_bytes_{0};
  std::atomic<std::int64_t> max_bytes_{0};
  std::array<Entry, kEntries> entries_{};
};

}  // namespace internal
}  // namespace strobe
