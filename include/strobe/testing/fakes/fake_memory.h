// FakeMemory: a few literal regions of memory, for tests of code that uses a MemoryReader.
//
//   FakeMemory memory;
//   memory.Map(0x7000, {1, 2, 3});
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/memory_reader.h"

namespace strobe::testing {

// Models MemoryReader. A read ends at the end of its region, even if another region begins there.
class FakeMemory {
 public:
  // Regions must not overlap.
  void Map(Address address, std::vector<std::uint8_t> bytes) {
    pieces_[address] = std::move(bytes);
  }
  // Removes the region that begins at `address`.
  void Unmap(Address address) { pieces_.erase(address); }

  std::size_t operator()(Address address, std::span<std::uint8_t> bytes) {
    reads_.push_back(address);
    auto piece = pieces_.upper_bound(address);
    if (piece == pieces_.begin()) return 0;
    const auto& [start, there] = *std::prev(piece);
    const Address offset = address - start;
    if (offset >= there.size()) return 0;
    const std::size_t count = std::min<std::size_t>(bytes.size(), there.size() - offset);
    std::copy_n(there.begin() + static_cast<std::ptrdiff_t>(offset), count, bytes.begin());
    return count;
  }

  // The address of each read so far.
  [[nodiscard]] const std::vector<Address>& reads() const { return reads_; }

 private:
  std::map<Address, std::vector<std::uint8_t>> pieces_;
  std::vector<Address> reads_;
};
static_assert(MemoryReader<FakeMemory>);

}  // namespace strobe::testing
