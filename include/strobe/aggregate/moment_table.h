// MomentTable: when the samples of a period were taken.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "strobe/aggregate/bounded_table.h"

namespace strobe {

// A moment is one sample: the row that it is a part of, its time, and its values. The table keeps
// the moments in the order in which they come, which is that of time for each thread.
class MomentTable {
 public:
  // Moments take at most this part of the budget's limit: stacks, which hold the amounts, need the
  // rest.
  static constexpr std::size_t kShareOfLimit = 4;

  explicit MomentTable(std::size_t value_count) : stride_(2 + value_count) {}

  // True if there is room for one more Add. Calls for memory where there is none; false if the
  // limit is reached.
  [[nodiscard]] bool MakeRoom(MemoryBudget& budget) {
    if (size_ < chunks_.size() * kChunkMoments) return true;
    if (memory_bytes() + ChunkBytes() > budget.limit_bytes() / kShareOfLimit) return false;
    return AllocateFrom(budget, ChunkBytes(), Admission::kWithinBudget, [this] {
      chunks_.push_back(std::make_unique<std::uint64_t[]>(kChunkMoments * stride_));
    });
  }
  // Requires room. `row` is a row of a RowTable, and `time_ns` is of any clock.
  void Add(std::uint32_t row, std::int64_t time_ns, std::span<const std::int64_t> values) {
    std::uint64_t* const words = Words(size_++);
    words[0] = row;
    words[1] = static_cast<std::uint64_t>(time_ns);
    const std::size_t count = std::min(values.size(), stride_ - 2);
    for (std::size_t i = 0; i < count; ++i) words[2 + i] = static_cast<std::uint64_t>(values[i]);
  }

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::uint32_t row(std::size_t moment) const {
    return static_cast<std::uint32_t>(Words(moment)[0]);
  }
  [[nodiscard]] std::int64_t time_ns(std::size_t moment) const {
    return static_cast<std::int64_t>(Words(moment)[1]);
  }
  [[nodiscard]] std::int64_t value(std::size_t moment, std::size_t index) const {
    return static_cast<std::int64_t>(Words(moment)[2 + index]);
  }
  [[nodiscard]] std::size_t memory_bytes() const { return chunks_.size() * ChunkBytes(); }

 private:
  static constexpr std::size_t kChunkMoments = 512;

  [[nodiscard]] std::size_t ChunkBytes() const {
    return kChunkMoments * stride_ * sizeof(std::uint64_t) + sizeof(void*);
  }
  [[nodiscard]] std::uint64_t* Words(std::size_t moment) const {
    return &chunks_[moment / kChunkMoments][moment % kChunkMoments * stride_];
  }

  std::size_t stride_;  // in words: row, time, values
  std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
  std::size_t size_ = 0;
};

}  // namespace strobe
