// StackTable: numbers for stacks, and the stacks of the numbers. Data plane: no lock, no memory.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// A tree of frames in a hash table of fixed size: stacks share the frames of their roots. Frames
// are only added. Two threads that add the same frame at the same time may add it twice, so that a
// stack may have more than one number.
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
    for (Node& node : nodes_) node.parent.store(kEmpty, std::memory_order_relaxed);
    refused_.store(0, std::memory_order_relaxed);
  }

  // How many stacks have found no room since the last Clear.
  [[nodiscard]] std::uint64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kEmpty = 0;
  static constexpr std::uint32_t kBusy = 1;
  static constexpr std::uint32_t kFirst = 2;     // the parent kNone; others follow
  static constexpr std::size_t kMaxProbes = 64;  // a table is full if so many nodes are taken

  struct Node {
    std::atomic<Address> address{0};
    std::atomic<std::uint32_t> parent{kEmpty};  // and kFirst
  };

  [[nodiscard]] std::uint32_t ParentOf(std::uint32_t node) const {
    return nodes_[node - 1].parent.load(std::memory_order_acquire) - kFirst;
  }
  [[nodiscard]] Address AddressOf(std::uint32_t node) const {
    return nodes_[node - 1].address.load(std::memory_order_relaxed);
  }

  // Finds or adds a node; kNone if there is no room.
  std::uint32_t Child(std::uint32_t parent, Address address) noexcept {
    constexpr std::uint64_t kSpread = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
    std::uint64_t hash = (std::uint64_t{address} ^ std::uint64_t{parent} << 32) * kSpread;
    hash = (hash ^ hash >> 32) * kSpread;
    const std::size_t home = static_cast<std::size_t>(hash >> (64 - kBits));
    for (std::size_t i = 0; i < kMaxProbes; ++i) {
      const std::size_t at = (home + i) % kNodes;
      Node& node = nodes_[at];
      std::uint32_t found = node.parent.load(std::memory_order_acquire);
      if (found == kEmpty &&
          node.parent.compare_exchange_strong(found, kBusy, std::memory_order_acquire)) {
        node.address.store(address, std::memory_order_relaxed);
        node.parent.store(parent + kFirst, std::memory_order_release);
        return static_cast<std::uint32_t>(at + 1);
      }
      if (found == parent + kFirst && node.address.load(std::memory_order_relaxed) == address)
        return static_cast<std::uint32_t>(at + 1);
    }
    return kNone;
  }

  std::array<Node, kNodes> nodes_{};
  std::atomic<std::uint64_t> refused_{0};
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
