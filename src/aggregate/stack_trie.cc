#include "strobe/aggregate/stack_trie.h"

namespace strobe::internal {

StackTrie::StackTrie() {
  chunks_.push_back(std::make_unique<Node[]>(kChunkNodes));
  size_ = 1;
}

std::uint32_t StackTrie::Insert(std::uint32_t parent, Address address, std::uint64_t hash,
                                MemoryBudget& budget, Admission admission) {
  const std::uint32_t id = size_;
  if (id == kNone) return kNone;
  const bool in_table = id != parent + 1;
  if (in_table && !branches_.MakeRoom(budget, admission)) return kNone;
  if (id % kChunkNodes == 0 && !AllocateFrom(budget, kChunkBytes, admission, [&] {
        chunks_.push_back(std::make_unique<Node[]>(kChunkNodes));
      }))
    return kNone;
  ++size_;
  (*this)[id] = {address, parent, kNone};
  if (in_table) branches_.Insert(hash, id);
  return id;
}

}  // namespace strobe::internal
