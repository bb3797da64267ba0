// LifeTable: when the threads of a period were registered, and how much CPU time they used.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "strobe/aggregate/bounded_table.h"

namespace strobe {

// What is new of a registered thread's life. All times are of the same clock.
struct LifePart {
  std::int64_t begin_ns = 0;  // when its registration began
  std::int64_t end_ns = 0;    // when its registration ended; 0 if it has not
  std::int64_t cpu_ns = -1;   // CPU time since the part before; -1 if unknown
  std::uint64_t samples = 0;  // captures since the part before
};

// A life is the sum of a thread's parts in a period.
class LifeTable {
 public:
  // Lives take at most this part of the budget's limit. A thread that is listed only for its life
  // also keeps its name and room for one row until the period ends: about three times as much.
  static constexpr std::size_t kShareOfLimit = 32;

  // Adds a part to the life of the thread with that key. Returns false, and adds nothing, if the
  // limit has no room for a life with that key.
  [[nodiscard]] bool Add(std::uint32_t key, const LifePart& part, MemoryBudget& budget) {
    if (!MakeRoom(key / kChunkLives, budget)) return false;
    std::optional<LifePart>& life = (*chunks_[key / kChunkLives])[key % kChunkLives];
    if (!life) life.emplace();
    life->begin_ns = part.begin_ns;
    life->end_ns = part.end_ns;
    if (part.cpu_ns >= 0) life->cpu_ns = std::max<std::int64_t>(life->cpu_ns, 0) + part.cpu_ns;
    life->samples += part.samples;
    return true;
  }

  // The life of the thread with that key; nullptr if there is none.
  [[nodiscard]] const LifePart* Find(std::uint32_t key) const {
    const std::size_t chunk = key / kChunkLives;
    if (chunk >= chunks_.size() || chunks_[chunk] == nullptr) return nullptr;
    const std::optional<LifePart>& life = (*chunks_[chunk])[key % kChunkLives];
    return life ? &*life : nullptr;
  }

  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  static constexpr std::size_t kChunkLives = 128;
  using Chunk = std::array<std::optional<LifePart>, kChunkLives>;

  bool MakeRoom(std::size_t chunk, MemoryBudget& budget) {
    if (chunk < chunks_.size() && chunks_[chunk] != nullptr) return true;
    const std::size_t places = chunk < chunks_.size() ? 0 : chunk + 1 - chunks_.size();
    const std::size_t bytes = sizeof(Chunk) + places * sizeof(chunks_[0]);
    if (memory_bytes_ + bytes > budget.limit_bytes() / kShareOfLimit) return false;
    if (!AllocateFrom(budget, bytes, Admission::kWithinBudget, [&] {
          auto lives = std::make_unique<Chunk>();
          if (chunk >= chunks_.size()) chunks_.resize(chunk + 1);
          chunks_[chunk] = std::move(lives);
        }))
      return false;
    memory_bytes_ += bytes;
    return true;
  }

  std::vector<std::unique_ptr<Chunk>> chunks_;  // by key; nullptr where no thread has a life
  std::size_t memory_bytes_ = 0;
};

}  // namespace strobe
