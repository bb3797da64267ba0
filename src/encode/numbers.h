// Numbers: numbers of those things that a message refers to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strobe::internal {

// Numbers things from 1, in the order of their first use.
class Numbers {
 public:
  explicit Numbers(std::size_t count) : numbers_(count, 0) {}

  std::uint32_t Use(std::size_t index) {
    if (numbers_[index] == 0) {
      used_.push_back(index);
      numbers_[index] = static_cast<std::uint32_t>(used_.size());
    }
    return numbers_[index];
  }

  // In the order of their numbers.
  [[nodiscard]] const std::vector<std::size_t>& used() const { return used_; }

 private:
  std::vector<std::uint32_t> numbers_;
  std::vector<std::size_t> used_;
};

}  // namespace strobe::internal
