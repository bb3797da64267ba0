// MergedStacks: the stacks of a period as one tree over all generations of its modules.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strobe/aggregate/bounded_table.h"
#include "strobe/aggregate/module_history.h"
#include "strobe/aggregate/stack_trie.h"
#include "strobe/base/address.h"
#include "strobe/core/profile.h"
#include "strobe/core/stack.h"

namespace strobe::internal {

// Merges the tries of the generations: a node names a module instead of a generation. A stack that
// ended early has its reason as the pseudo-frame at its root.
//
// The maps are the standard library's, because an Abseil map is left in a broken state if an
// insertion runs out of memory, and cannot be destroyed safely.
class MergedStacks {
 public:
  // Both must outlive the object.
  MergedStacks(const StackTrie& trie, const ModuleHistory& modules);

  // The nodes, parents first, from the root on, which is 0.
  [[nodiscard]] const std::vector<StackNode>& nodes() const { return nodes_; }
  // What the nodes name. `module` is an index into the history's modules.
  [[nodiscard]] const std::vector<Frame>& frames() const { return frames_; }
  // The node of a node of the trie.
  [[nodiscard]] std::uint32_t NodeOf(std::uint32_t trie_node) const { return merged_[trie_node]; }
  // The node of a pseudo-frame at the root; nothing if there is none.
  [[nodiscard]] std::optional<std::uint32_t> FindRoot(PseudoFrame frame) const;

 private:
  struct PairHash {
    std::size_t operator()(const std::pair<Address, std::uint32_t>& pair) const {
      return HashPair(pair.first, pair.second);
    }
  };
  using PairNumbers =
      std::unordered_map<std::pair<Address, std::uint32_t>, std::uint32_t, PairHash>;

  std::uint32_t InternFrame(Address address, std::uint32_t module);
  std::uint32_t FrameOf(std::uint32_t generation, Address address);
  std::uint32_t Child(std::uint32_t parent, std::uint32_t frame);
  std::uint32_t Root(Address key);

  const ModuleHistory& modules_;
  std::vector<Frame> frames_;
  PairNumbers frame_ids_;          // by (address, module)
  PairNumbers frames_by_address_;  // by (address, generation)
  std::vector<StackNode> nodes_;
  std::unordered_map<std::uint64_t, std::uint32_t> node_ids_;
  std::unordered_map<Address, std::uint32_t> pseudo_nodes_;
  bool may_collide_ = false;
  std::vector<std::uint32_t> merged_;  // of each trie node
};

}  // namespace strobe::internal
