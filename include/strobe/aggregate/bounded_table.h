// The parts of the aggregator's tables: a memory budget that limits their growth, and a hash table
// of ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace strobe {

// Bytes in use against a limit. Collector thread only.
class MemoryBudget {
 public:
  explicit MemoryBudget(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // True if the limit has room for `bytes` more and for the reserve.
  [[nodiscard]] bool Allows(std::size_t bytes) const {
    return used_bytes_ + reserve_bytes_ + bytes <= limit_bytes_;
  }
  // Takes `bytes`, even beyond the limit.
  void Take(std::size_t bytes) { used_bytes_ += bytes; }
  void GiveBack(std::size_t bytes) { used_bytes_ -= bytes; }
  // The bytes that Allows reserves for later calls of Take.
  void set_reserve_bytes(std::size_t bytes) { reserve_bytes_ = bytes; }

  [[nodiscard]] std::size_t used_bytes() const { return used_bytes_; }
  [[nodiscard]] std::size_t limit_bytes() const { return limit_bytes_; }

 private:
  std::size_t limit_bytes_;
  std::size_t used_bytes_ = 0;
  std::size_t reserve_bytes_ = 0;
};

// Whether a table may exceed the budget.
enum class Admission { kWithinBudget, kAlways };

// Calls allocate(), then takes `bytes` from the budget. If the budget refuses, returns false
// without a call. If allocate() throws, takes nothing.
template <class Allocate>
[[nodiscard]] bool AllocateFrom(MemoryBudget& budget, std::size_t bytes, Admission admission,
                                Allocate allocate) {
  if (admission == Admission::kWithinBudget && !budget.Allows(bytes)) return false;
  allocate();
  budget.Take(bytes);
  return true;
}

// A 64-bit mix of two numbers: the product carries every bit upwards, and IdTable uses the upper
// half.
constexpr std::uint64_t HashPair(std::uint64_t a, std::uint64_t b) {
  std::uint64_t hash = (a ^ (b * 0x9E3779B97F4A7C15)) * 0xD6E8FEB86659FD93;
  hash ^= hash >> 32;
  return hash * 0xD6E8FEB86659FD93;
}

// A hash table of ids with open addressing. The caller stores the keys. A slot has 32 bits of the
// hash, so that growing reads no key and a probe compares few keys.
class IdTable {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The id under `hash` for which matches(id) holds, or kNone.
  template <class Matches>
  [[nodiscard]] std::uint32_t Find(std::uint64_t hash, Matches&& matches) const {
    if (slots_.empty()) return kNone;
    const std::size_t mask = slots_.size() - 1;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = tag & mask;; at = (at + 1) & mask) {
      const Slot slot = slots_[at];
      if (slot.id == kNone) return kNone;
      if (slot.tag == tag && matches(slot.id)) return slot.id;
    }
  }

  // Makes sure that one more Insert fits. While the table grows, the budget pays for both the old
  // and the new slots. False if the budget refuses.
  [[nodiscard]] bool MakeRoom(MemoryBudget& budget, Admission admission) {
    if ((size_ + 1) * 4 <= slots_.size() * 3) return true;
    const std::size_t capacity = slots_.empty() ? kMinSlots : slots_.size() * 2;
    std::vector<Slot> old;
    if (!AllocateFrom(budget, capacity * sizeof(Slot), admission, [&] { old.resize(capacity); }))
      return false;
    std::swap(old, slots_);
    for (const Slot slot : old) {
      if (slot.id != kNone) Place(slot);
    }
    budget.GiveBack(old.size() * sizeof(Slot));
    return true;
  }

  // Adds `id`. MakeRoom must have been called since the last Insert.
  void Insert(std::uint64_t hash, std::uint32_t id) {
    Place({static_cast<std::uint32_t>(hash >> 32), id});
    ++size_;
  }

  [[nodiscard]] std::size_t memory_bytes() const { return slots_.size() * sizeof(Slot); }

 private:
  static constexpr std::size_t kMinSlots = 64;
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t id = kNone;
  };

  void Place(Slot slot) {
    const std::size_t mask = slots_.size() - 1;
    std::size_t at = slot.tag & mask;
    while (slots_[at].id != kNone) at = (at + 1) & mask;
    slots_[at] = slot;
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace strobe
