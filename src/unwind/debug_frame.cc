#include "debug_frame.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace strobe::internal {

void MakeEhFrame(std::vector<std::uint8_t>& bytes, Address load_bias) {
  constexpr std::uint32_t kCie = 0xFFFFFFFF;
  constexpr std::uint32_t kMaxLength = 0xFFFFFFF0;  // above it is the mark of the 64-bit format
  constexpr std::size_t kHeadBytes = 8;             // the length and the number
  constexpr std::size_t kMaxCies = std::size_t{1} << 16;  // a reader keeps each
  std::vector<std::size_t> cies;                          // where they are, in order
  std::size_t at = 0;
  while (bytes.size() - at >= kHeadBytes + sizeof(Address)) {
    std::uint32_t length = 0;
    std::uint32_t id = 0;
    std::memcpy(&length, bytes.data() + at, sizeof(length));
    std::memcpy(&id, bytes.data() + at + sizeof(length), sizeof(id));
    if (length < sizeof(id) + sizeof(Address) || length >= kMaxLength ||
        length > bytes.size() - at - sizeof(length))
      break;
    if (id == kCie) {
      if (cies.size() == kMaxCies) break;
      cies.push_back(at);
      id = 0;
    } else {
      if (!std::binary_search(cies.begin(), cies.end(), id)) break;
      id = static_cast<std::uint32_t>(at + sizeof(length) - id);
      Address begin = 0;
      std::memcpy(&begin, bytes.data() + at + kHeadBytes, sizeof(begin));
      if (begin != 0) begin += load_bias;  // 0 is a function that the linker has dropped
      std::memcpy(bytes.data() + at + kHeadBytes, &begin, sizeof(begin));
    }
    std::memcpy(bytes.data() + at + sizeof(length), &id, sizeof(id));
    at += sizeof(length) + length;
  }
  bytes.resize(at);
}

}  // namespace strobe::internal
