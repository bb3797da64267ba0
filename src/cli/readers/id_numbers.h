// IdNumbers: numbers the ids of a table of a pprof file, in the order in which they are first seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace strobe::internal {

// Ids are any 64-bit numbers. Most files count from 1, so small ids have a table.
class IdNumbers {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The number of `id`; a new one if `id` has not been seen.
  std::uint32_t Number(std::uint64_t id) {
    if (id < small_.size() && small_[id] != kNone) [[likely]]
      return small_[id];
    return Add(id);
  }
  [[nodiscard]] std::uint32_t size() const { return size_; }

 private:
  static constexpr std::size_t kMaxSmall = std::size_t{1} << 20;

  std::uint32_t Add(std::uint64_t id) {
    if (id >= kMaxSmall) {
      const auto [place, is_new] = large_.try_emplace(id, size_);
      return is_new ? size_++ : place->second;
    }
    if (id >= small_.size()) small_.resize(id + 1 + small_.size(), kNone);
    return small_[id] = size_++;
  }

  std::vector<std::uint32_t> small_;
  absl::flat_hash_map<std::uint64_t, std::uint32_t> large_;
  std::uint32_t size_ = 0;
};

}  // namespace strobe::internal
