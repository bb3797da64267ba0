// StackTrie: the calling-context trie, which has every distinct path of addresses from a root once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strobe/aggregate/bounded_table.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Node 0 is the trie's own root. Its children are the roots of stacks: one for each (module
// generation, StackEnd), because an address means a function only within a generation, and one for
// each pseudo-frame that stands alone. Ids rise from parent to child.
//
// A node's first child usually comes right after it, since a new stack is written in one go. Such a
// child needs no entry in the hash table, and following a path that branches rarely reads memory in
// order. The newest node has no children: the rest of a new stack is written without a search.
class StackTrie {
 public:
  static constexpr std::uint32_t kRoot = 0;
  static constexpr std::uint32_t kNone = IdTable::kNone;

  struct Node {
    Address address = 0;  // for a child of kRoot: its key, see below
    std::uint32_t parent = 0;
    std::uint32_t first_row = kNone;  // set by RowTable: the first row of this stack
  };

  // The keys of the roots of stacks.
  static constexpr Address StackKey(std::uint32_t generation, StackEnd end) {
    return Address{generation} << 8 | static_cast<Address>(end);
  }
  static constexpr Address PseudoKey(PseudoFrame frame) {
    return kPseudoBit | static_cast<Address>(frame);
  }
  static constexpr bool IsPseudoKey(Address key) { return (key & kPseudoBit) != 0; }
  static constexpr PseudoFrame PseudoOfKey(Address key) {
    return static_cast<PseudoFrame>(key & 0xFF);
  }
  static constexpr std::uint32_t GenerationOfKey(Address key) {
    return static_cast<std::uint32_t>(key >> 8);
  }
  static constexpr StackEnd EndOfKey(Address key) { return static_cast<StackEnd>(key & 0xFF); }

  StackTrie();

  // The child of `parent` with `address`, made if it is missing; kNone if it is missing and the
  // budget refuses.
  std::uint32_t Child(std::uint32_t parent, Address address, MemoryBudget& budget,
                      Admission admission = Admission::kWithinBudget) {
    const std::uint32_t next = parent + 1;
    if (next == size_) return Insert(parent, address, 0, budget, admission);
    const Node& node = (*this)[next];
    if (node.address == address && node.parent == parent) return next;
    const std::uint64_t hash = HashPair(address, parent);
    const std::uint32_t found = branches_.Find(hash, [&](std::uint32_t id) {
      const Node& other = (*this)[id];
      return other.address == address && other.parent == parent;
    });
    return found != kNone ? found : Insert(parent, address, hash, budget, admission);
  }

  [[nodiscard]] Node& operator[](std::uint32_t id) {
    return chunks_[id / kChunkNodes][id % kChunkNodes];
  }
  [[nodiscard]] const Node& operator[](std::uint32_t id) const {
    return chunks_[id / kChunkNodes][id % kChunkNodes];
  }
  // Nodes, the root included.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return chunks_.size() * kChunkBytes + branches_.memory_bytes();
  }

 private:
  static constexpr Address kPseudoBit = Address{1} << 63;
  static constexpr std::uint32_t kChunkNodes = 1024;  // growing by chunks needs no second copy
  static constexpr std::size_t kChunkBytes = kChunkNodes * sizeof(Node) + sizeof(void*);

  // `hash` is of no use for the child of the newest node.
  std::uint32_t Insert(std::uint32_t parent, Address address, std::uint64_t hash,
                       MemoryBudget& budget, Admission admission);

  std::vector<std::unique_ptr<Node[]>> chunks_;
  IdTable branches_;  // every node that is not its parent's next
  std::uint32_t size_ = 0;
};
static_assert(sizeof(StackTrie::Node) == 16);

}  // namespace internal
}  // namespace strobe
