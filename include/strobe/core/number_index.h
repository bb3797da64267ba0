// NumberIndex: finds the entries of a dense array by hash. Data plane: no lock, no memory.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A hash table of the numbers below 2^kNumberBits, in tiers, each four times as large as the one
// before. A number goes into the first tier that has a free slot near the hash's home there. So the
// pages that few numbers touch are few. The first kHashBits bits of a hash choose its home, and
// kTagBits further ones are kept beside the number: most searches need not look at the entry.
//
// Thread-safe and signal-safe. A search finds the numbers whose Add came before, and may find those
// that are added or removed meanwhile. All zero bytes are an empty table.
template <unsigned kNumberBits>
class NumberIndex {
 public:
  static constexpr unsigned kHashBits = kNumberBits + 1;
  static constexpr unsigned kTagBits = 32 - kHashBits;
  // A number lies in one of so many slots from its home on.
  static constexpr std::size_t kProbes = 16;

  constexpr NumberIndex() = default;
  NumberIndex(const NumberIndex&) = delete;
  NumberIndex& operator=(const NumberIndex&) = delete;

  // Returns false if there is no room for the number. What it stands for is written before.
  bool Add(std::uint64_t hash, std::uint32_t number) noexcept {
    for (unsigned tier = 0; tier < kTiers; ++tier) {
      Use(tier);
      const std::size_t home = HomeOf(tier, hash);
      counts_[home].fetch_add(1, std::memory_order_relaxed);
      for (std::size_t i = 0; i < kProbes; ++i) {
        std::uint32_t none = 0;
        Slot& slot = SlotAt(tier, home, i);
        if (slot.load(std::memory_order_relaxed) == 0 &&
            slot.compare_exchange_strong(none, ThreadOf(hash, number), std::memory_order_release,
                                         std::memory_order_relaxed))
          return true;
      }
      counts_[home].fetch_sub(1, std::memory_order_relaxed);
    }
    return false;
  }

  // Returns a number of this hash for which is_it(number) is true; nothing if there is none.
  template <class IsIt>
  std::optional<std::uint32_t> Find(std::uint64_t hash, const IsIt& is_it) const noexcept {
    const unsigned tiers = tiers_.load(std::memory_order_relaxed);
    for (unsigned tier = 0; tier < tiers; ++tier) {
      const std::size_t home = HomeOf(tier, hash);
      if (counts_[home].load(std::memory_order_relaxed) == 0) continue;
      for (std::size_t i = 0; i < kProbes; ++i) {
        const std::uint32_t slot = SlotAt(tier, home, i).load(std::memory_order_acquire);
        if (slot >> kHashBits != TagOf(hash)) continue;
        const std::uint32_t number = (slot & kNumberMask) - 1;
        if (is_it(number)) return number;
      }
    }
    return std::nullopt;
  }

  // Removes a number that was added with this hash. One thread removes it.
  void Remove(std::uint64_t hash, std::uint32_t number) noexcept {
    for (unsigned tier = 0; tier < kTiers; ++tier) {
      const std::size_t home = HomeOf(tier, hash);
      for (std::size_t i = 0; i < kProbes; ++i) {
        Slot& slot = SlotAt(tier, home, i);
        if (slot.load(std::memory_order_relaxed) != ThreadOf(hash, number)) continue;
        slot.store(0, std::memory_order_relaxed);
        counts_[home].fetch_sub(1, std::memory_order_relaxed);
        return;
      }
    }
  }

  // Removes all numbers. No Add and no Remove may be under way. Touches only memory that was used.
  void Clear() noexcept {
    const unsigned tiers = tiers_.exchange(0, std::memory_order_relaxed);
    for (std::size_t i = tiers == 0 ? kSlots : BeginOf(tiers - 1); i < kSlots; ++i) {
      slots_[i].store(0, std::memory_order_relaxed);
      counts_[i].store(0, std::memory_order_relaxed);
    }
  }

 private:
  using Slot = std::atomic<std::uint32_t>;  // the tag, and the number plus 1; 0 if it is free

  static constexpr std::uint32_t kNumberMask = (std::uint32_t{1} << kHashBits) - 1;
  // A smaller tier would be less than a page.
  static constexpr unsigned kMinTierBits = 10;
  static constexpr unsigned kTiers =
      kHashBits < kMinTierBits ? 1 : (kHashBits - kMinTierBits) / 2 + 1;
  // The last tier has two slots a number: there is room in it near every home but by rare chance.
  static constexpr unsigned BitsOf(unsigned tier) { return kHashBits - 2 * (kTiers - 1 - tier); }
  static constexpr std::size_t SlotsOf(unsigned tier) { return std::size_t{1} << BitsOf(tier); }
  // The first tier lies at the end, beside what follows the index: few numbers touch few pages.
  static constexpr std::size_t BeginOf(unsigned tier) {
    return (SlotsOf(kTiers - 1) - SlotsOf(tier)) / 3 * 4;  // the sum of the larger tiers
  }
  static constexpr std::size_t kSlots = BeginOf(0) + SlotsOf(0);

  static std::size_t HomeOf(unsigned tier, std::uint64_t hash) {
    return BeginOf(tier) + static_cast<std::size_t>(hash >> (64 - BitsOf(tier)));
  }
  static std::uint32_t TagOf(std::uint64_t hash) {
    const std::uint64_t bits = hash << kHashBits >> (64 - kTagBits);
    return static_cast<std::uint32_t>(bits) | 1;  // a free slot has the tag 0
  }
  static std::uint32_t ThreadOf(std::uint64_t hash, std::uint32_t number) {
    return TagOf(hash) << kHashBits | (number + 1);
  }
  // The slot that is i after a home. A tier's first slot comes after its last one.
  Slot& SlotAt(unsigned tier, std::size_t home, std::size_t i) noexcept {
    return slots_[Around(tier, home, i)];
  }
  const Slot& SlotAt(unsigned tier, std::size_t home, std::size_t i) const noexcept {
    return slots_[Around(tier, home, i)];
  }
  static std::size_t Around(unsigned tier, std::size_t home, std::size_t i) {
    const std::size_t mask = SlotsOf(tier) - 1;
    return BeginOf(tier) + ((home - BeginOf(tier) + i) & mask);
  }

  void Use(unsigned tier) noexcept {
    unsigned tiers = tiers_.load(std::memory_order_relaxed);
    while (tiers <= tier &&
           !tiers_.compare_exchange_weak(tiers, tier + 1, std::memory_order_relaxed)) {
    }
  }

  std::array<Slot, kSlots> slots_{};
  // Of each home, how many numbers of its tier have it: at most kProbes, and those being added.
  std::array<std::atomic<std::uint8_t>, kSlots> counts_{};
  std::atomic<unsigned> tiers_{0};  // that are in use
};

}  // namespace internal
}  // namespace strobe
