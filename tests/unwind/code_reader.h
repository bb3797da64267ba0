// CodeReader: reads the code of a test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "strobe/core/memory_reader.h"

namespace strobe::testing {

inline constexpr Address kCodeStart = 0x10000;

// Reads `code` at kCodeStart.
inline AnyMemoryReader CodeReader(std::vector<std::uint8_t> code) {
  return [code = std::move(code)](Address address, std::span<std::uint8_t> bytes) {
    if (address < kCodeStart || address - kCodeStart >= code.size()) return std::size_t{0};
    const auto rest = std::span(code).subspan(static_cast<std::size_t>(address - kCodeStart));
    const std::size_t count = std::min(bytes.size(), rest.size());
    std::copy_n(rest.begin(), count, bytes.begin());
    return count;
  };
}

}  // namespace strobe::testing
