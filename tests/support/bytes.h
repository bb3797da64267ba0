// Bytes that a test makes by hand: numbers in the encodings of DWARF and of the formats of images.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

namespace strobe::testing {

using Bytes = std::vector<std::uint8_t>;

inline Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

template <class T>
Bytes Fixed(T value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

inline Bytes Uleb(std::uint64_t value) {
  Bytes bytes;
  do {
    bytes.push_back(static_cast<std::uint8_t>((value & 0x7F) | (value > 0x7F ? 0x80 : 0)));
    value >>= 7;
  } while (value != 0);
  return bytes;
}

inline Bytes Sleb(std::int64_t value) {
  Bytes bytes;
  while (value < -64 || value > 63) {
    bytes.push_back(static_cast<std::uint8_t>((value & 0x7F) | 0x80));
    value >>= 7;
  }
  bytes.push_back(static_cast<std::uint8_t>(value & 0x7F));
  return bytes;
}

inline Bytes Block(const Bytes& bytes) { return Join({Uleb(bytes.size()), bytes}); }

// The letters, and a zero behind them.
inline Bytes ZeroEnded(std::string_view letters) {
  Bytes bytes(letters.begin(), letters.end());
  bytes.push_back(0);
  return bytes;
}

}  // namespace strobe::testing
