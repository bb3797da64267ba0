// StackTable: numbers for stacks, and the stacks of the numbers. Data plane: no lock, no memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/number_index.h"
#include "strobe/core/stack.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A frame that is no code: it stands for a whole stack, which the collector knows by `number`.
constexpr Address kPendingBit = Address{1} << 63;
constexpr Address PendingFrame(std::uint64_t number) { return number | kPendingBit; }
// The number; 0 if the frame is code.
constexpr std::uint64_t PendingNumber(Address frame) {
  return (frame & kPendingBit) != 0 ? frame & ~kPendingBit : 0;
}

// A tree of frames: stacks share the frames of their roots. Frames are only added. Two threads that
// add the same frame at the same time may add it twice, so that a stack may have more than one
// number. Nodes fill an array from its front, so that few of them take little memory.
//
// Thread-safe and signal-safe. All zero bytes are an empty table.
template <unsigned kBits = 17>
class StackTable {
 public:
  static constexpr std::size_t kNodes = std::size_t{1} << kBits;
  static constexpr std::uint32_t kNone = 0;  // no stack

  constexpr StackTable() = default;
  StackTable(const StackTable&) = delete;
  StackTable& operator=(const StackTable&) = delete;

  // The number of a stack; kNone, and counted, if the table has no room for it.
  std::uint32_t Add(std::span<const Address> leaf_first, StackEnd end) noexcept {
    // The outermost node stands for the end.
    std::uint32_t node = Child(kNone, static_cast<Address>(end));
    for (std::size_t i = leaf_first.size(); node != kNone && i-- > 0;)
      node = Child(node, leaf_first[i]);
    if (node == kNone) refused_.fetch_add(1, std::memory_order_relaxed);
    return node;
  }

  // The number of a stack that the collector finishes. Until then `pending` stands for it, which is
  // not 0 and less than 2^63: Read gives its PendingFrame. kNone, and counted, without room.
  std::uint32_t AddPending(std::uint64_t pending) noexcept {
    const Address frame = PendingFrame(pending);
    return Add({&frame, 1}, StackEnd::kNoUnwindInfo);
  }

  // Writes the frames of a stack, leaf first, as many as there is room for. Returns how many, and
  // sets `end`. `stack` is not kNone. If Clear is called meanwhile, the result is some frames.
  std::size_t Read(std::uint32_t stack, std::span<Address> leaf_first,
                   StackEnd& end) const noexcept {
    std::size_t count = 0;
    std::uint32_t node = stack;
    for (std::size_t depth = 0; depth < kNodes; ++depth) {
      const std::uint32_t parent = ParentOf(node);
      if (parent == kNone || parent > kNodes) break;
      if (count < leaf_first.size()) leaf_first[count++] = AddressOf(node);
      node = parent;
    }
    end = static_cast<StackEnd>(std::min<Address>(AddressOf(node), kStackEndCount - 1));
    return count;
  }

  // Forgets all stacks, and counts from 0. No Add may be under way.
  void Clear() noexcept {
    index_.Clear();
    used_.store(0, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
  }

  // How many stacks have found no room since the last Clear.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  // The number of a node is its place plus 1.
  struct Node {
    std::atomic<Address> address{0};
    std::atomic<std::uint32_t> parent{kNone};
  };

  [[nodiscard]] std::uint32_t ParentOf(std::uint32_t node) const {
    return nodes_[node - 1].parent.load(std::memory_order_relaxed);
  }
  [[nodiscard]] Address AddressOf(std::uint32_t node) const {
    return nodes_[node - 1].address.load(std::memory_order_relaxed);
  }

  // Finds or adds a node; kNone if there is no room.
  std::uint32_t Child(std::uint32_t parent, Address address) noexcept {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    std::uint64_t hash = (std::uint64_t{address} ^ std::uint64_t{parent} << 32) * kSpread;
    hash = (hash ^ hash >> 32) * kSpread;
    const std::optional<std::uint32_t> found = index_.Find(hash, [&](std::uint32_t at) {
      return ParentOf(at + 1) == parent && AddressOf(at + 1) == address;
    });
    if (found) return *found + 1;
    if (used_.load(std::memory_order_relaxed) >= kNodes) return kNone;
    const std::uint32_t at = used_.fetch_add(1, std::memory_order_relaxed);
    if (at >= kNodes) return kNone;
    nodes_[at].address.store(address, std::memory_order_relaxed);
    nodes_[at].parent.store(parent, std::memory_order_relaxed);
    return index_.Add(hash, at) ? at + 1 : kNone;
  }

  alignas(4096) NumberIndex<kBits> index_;  // a page's begin: its first tier is one page
  std::atomic<std::uint32_t> used_{0};      // nodes, and the attempts to have one more
  std::atomic<std::uint64_t> refused_{0};
  std::array<Node, kNodes> nodes_{};
};

}  // namespace internal
}  // namespace strobe
