// RowTable: the values of a period, one row for each distinct (stack, labels).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strobe/aggregate/bounded_table.h"
#include "strobe/aggregate/stack_trie.h"

namespace strobe {

// Rows are numbered in the order of their first sample. The node of a stack refers to the stack's
// first row; a hash table has the rows with other labels. `labels` is any number that stands for a
// set of labels.
class RowTable {
 public:
  static constexpr std::uint32_t kNone = IdTable::kNone;

  explicit RowTable(std::size_t value_count) : stride_(1 + value_count) {}

  // The row of `labels` at `node`, made if it is missing; kNone if it is missing and the budget
  // refuses.
  std::uint32_t FindOrAdd(internal::StackTrie& trie, std::uint32_t node, std::uint32_t labels,
                          MemoryBudget& budget, Admission admission = Admission::kWithinBudget) {
    const std::uint32_t first = trie[node].first_row;
    const std::uint64_t key = Key(node, labels);
    if (first != kNone && Words(first)[0] == key) return first;
    return FindOther(trie, key, budget, admission);
  }

  // Adds `values` to those of `row`. A sum that overflows wraps.
  void Add(std::uint32_t row, std::span<const std::int64_t> values) {
    std::uint64_t* const sums = Words(row) + 1;
    const std::size_t count = std::min(values.size(), stride_ - 1);
    for (std::size_t i = 0; i < count; ++i) sums[i] += static_cast<std::uint64_t>(values[i]);
  }

  [[nodiscard]] std::uint32_t node(std::uint32_t row) const {
    return static_cast<std::uint32_t>(Words(row)[0] >> 32);
  }
  [[nodiscard]] std::uint32_t labels(std::uint32_t row) const {
    return static_cast<std::uint32_t>(Words(row)[0]);
  }
  [[nodiscard]] std::int64_t value(std::uint32_t row, std::size_t index) const {
    return static_cast<std::int64_t>(Words(row)[1 + index]);
  }
  // The sum of all rows. A sum that overflows wraps.
  [[nodiscard]] std::int64_t Sum(std::size_t index) const {
    std::uint64_t sum = 0;
    for (std::uint32_t row = 0; row < size_; ++row) sum += Words(row)[1 + index];
    return static_cast<std::int64_t>(sum);
  }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::size_t value_count() const { return stride_ - 1; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return chunks_.size() * ChunkBytes() + others_.memory_bytes();
  }
  // The average cost of one more row.
  [[nodiscard]] std::size_t row_bytes() const { return stride_ * sizeof(std::uint64_t) + 24; }

 private:
  static constexpr std::uint32_t kChunkRows = 512;

  static constexpr std::uint64_t Key(std::uint32_t node, std::uint32_t labels) {
    return std::uint64_t{node} << 32 | labels;
  }
  [[nodiscard]] std::size_t ChunkBytes() const {
    return kChunkRows * stride_ * sizeof(std::uint64_t) + sizeof(void*);
  }
  [[nodiscard]] std::uint64_t* Words(std::uint32_t row) const {
    return &chunks_[row / kChunkRows][row % kChunkRows * stride_];
  }

  std::uint32_t FindOther(internal::StackTrie& trie, std::uint64_t key, MemoryBudget& budget,
                          Admission admission);

  std::size_t stride_;  // in words: the key, then the values
  std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
  IdTable others_;  // rows that are not their node's first
  std::uint32_t size_ = 0;
};

}  // namespace strobe
