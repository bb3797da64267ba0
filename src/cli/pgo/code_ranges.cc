#include "code_ranges.h"

#include <algorithm>

namespace strobe::internal {

std::vector<std::uint64_t> AddressesIn(std::vector<CodeRange> ranges) {
  std::ranges::stable_sort(
      ranges, [](const CodeRange& a, const CodeRange& b) { return a.amount > b.amount; });
  std::vector<std::uint64_t> addresses;
  for (const CodeRange& range : ranges) {
    if (range.end - range.begin > kMaxReadBytes - addresses.size()) continue;
    for (std::uint64_t at = range.begin; at < range.end; ++at) addresses.push_back(at);
  }
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  return addresses;
}

}  // namespace strobe::internal
