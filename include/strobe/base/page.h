#pragma once

#include <cstdint>

namespace strobe::internal {

// The smallest page of any system that this project runs on, in bytes. Larger pages are multiples
// of it: code that reads up to the end of such a page stays within one page of the system.
inline constexpr std::uint64_t kPageBytes = 4096;

// The first address of the page that holds `address`.
constexpr std::uint64_t PageOf(std::uint64_t address) { return address & ~(kPageBytes - 1); }

// `bytes`, rounded up to whole pages; `bytes` is at most 2^64 - 4096.
constexpr std::uint64_t RoundUpToPages(std::uint64_t bytes) {
  return PageOf(bytes + kPageBytes - 1);
}

}  // namespace strobe::internal
