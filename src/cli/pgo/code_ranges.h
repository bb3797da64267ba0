// CodeRange: the code of a function, of which each byte's lines are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace strobe::internal {

// The bytes of code whose lines are read one by one.
inline constexpr std::size_t kMaxReadBytes = std::size_t{4} << 20;

struct CodeRange {
  double amount = 0;  // of the samples there
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// The addresses in `ranges`, sorted and distinct. A range that is beyond kMaxReadBytes with those
// of larger amounts is left out.
std::vector<std::uint64_t> AddressesIn(std::vector<CodeRange> ranges);

}  // namespace strobe::internal
