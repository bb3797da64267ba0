// RuleCache: the rules that walks have looked up, by the address of the code. The same callers are
// on the stack again and again. To find the module, the line of its table and the row takes several
// loads, each of which waits for the one before; the cache takes one.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/base/address.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/signal_safe.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// Shared by all threads, without locks. Each entry is one word: the rule, and all bits of the
// address that the entry's place does not give. So Find never returns another address's rule.
// Addresses that share a place evict one another. Signal-safe.
class RuleCache {
 public:
  // Add ignores addresses that need more bits. User space ends below.
  static constexpr unsigned kAddressBits = 48;

  RuleCache() = default;
  // A cache that stays empty, for snapshots of several processes: the same address is other code in
  // each. All snapshots can share one.
  struct StaysEmpty {};
  explicit RuleCache(StaysEmpty /*tag*/) noexcept : stays_empty_(true) {}

  // The rule that was added for `pc`, or Unknown.
  [[nodiscard]] STROBE_SIGNAL_SAFE UnwindRule Find(Address pc) const noexcept {
    const Pair& pair = pairs_[PlaceOf(pc)];
    std::uint64_t entry = pair[0].load(std::memory_order_relaxed);
    if (entry >> kRuleBits != RestOf(pc)) {
      entry = pair[1].load(std::memory_order_relaxed);
      if (entry >> kRuleBits != RestOf(pc)) return UnwindRule::Unknown();
    }
    return UnwindRule::FromBits(static_cast<std::uint32_t>(entry & kRuleMask));
  }

  // Does nothing if the rule does not fit into an entry, or the cache stays empty.
  STROBE_SIGNAL_SAFE void Add(Address pc, UnwindRule rule) noexcept {
    const std::uint64_t bits = rule.bits();
    if (pc >> kAddressBits != 0 || bits > kRuleMask || stays_empty_) return;
    Pair& pair = pairs_[PlaceOf(pc)];
    pair[1].store(pair[0].load(std::memory_order_relaxed), std::memory_order_relaxed);
    pair[0].store(RestOf(pc) << kRuleBits | bits, std::memory_order_relaxed);
  }

 private:
  static constexpr unsigned kPlaceBits = 14;
  static constexpr unsigned kRuleBits = 64 - (kAddressBits - kPlaceBits);
  static constexpr std::uint64_t kRuleMask = (std::uint64_t{1} << kRuleBits) - 1;
  static_assert(UnwindRule::Unknown().bits() == 0, "an entry that was never written is Unknown");

  using Pair = std::array<std::atomic<std::uint64_t>, 2>;

  // Places are in the order of the code. The few callers in 16 bytes of code share a place; so do
  // addresses that are 256 KiB apart.
  static constexpr unsigned kSharedBits = 4;
  static std::size_t PlaceOf(Address pc) noexcept {
    return static_cast<std::size_t>(pc >> kSharedBits & ((1u << kPlaceBits) - 1));
  }
  // The bits of the address that its place does not give. The lowest bits are mixed into bits that
  // the place gives.
  static Address RestOf(Address pc) noexcept {
    return pc >> kPlaceBits ^ (pc & ((Address{1} << kSharedBits) - 1));
  }

  alignas(kCacheLineBytes) std::array<Pair, std::size_t{1} << kPlaceBits> pairs_{};
  const bool stays_empty_ = false;
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace strobe
