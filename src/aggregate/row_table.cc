#include "strobe/aggregate/row_table.h"

namespace strobe {

using internal::StackTrie;

std::uint32_t RowTable::FindOther(StackTrie& trie, std::uint64_t key, MemoryBudget& budget,
                                  Admission admission) {
  const auto node = static_cast<std::uint32_t>(key >> 32);
  const bool is_first = trie[node].first_row == kNone;
  const std::uint64_t hash = HashPair(key, 0);
  if (!is_first) {
    const std::uint32_t found =
        others_.Find(hash, [&](std::uint32_t row) { return Words(row)[0] == key; });
    if (found != kNone) return found;
    if (!others_.MakeRoom(budget, admission)) return kNone;
  }
  const std::uint32_t row = size_;
  if (row == kNone) return kNone;
  if (row % kChunkRows == 0 && !AllocateFrom(budget, ChunkBytes(), admission, [&] {
        chunks_.push_back(std::make_unique<std::uint64_t[]>(kChunkRows * stride_));
      }))
    return kNone;
  ++size_;
  Words(row)[0] = key;
  if (is_first) {
    trie[node].first_row = row;
  } else {
    others_.Insert(hash, row);
  }
  return row;
}

}  // namespace strobe
