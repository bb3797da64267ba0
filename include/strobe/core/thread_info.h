#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/base/address.h"

namespace strobe {

// The longest thread name that is kept, in bytes.
inline constexpr std::size_t kMaxThreadNameBytes = 63;

// The bounds of a thread's stack: reads are valid in [low, high). Both zero where the system did
// not say.
struct StackBounds {
  Address low = 0;
  Address high = 0;
  // Whether the system extends it downwards as it is used: then what lies below `low` may be part
  // of it by now.
  bool grows = false;

  [[nodiscard]] bool empty() const { return high <= low; }
  [[nodiscard]] bool Holds(Address address) const { return address >= low && address < high; }
};

// What a platform knows of a thread, read by the thread itself when it registers.
struct ThreadInfo {
  std::uint64_t id = 0;  // the system's thread id
  StackBounds stack;
};

// At most `max_bytes` bytes of `text`, cut at a character, every byte that is not valid UTF-8
// replaced by '?' and every control character by a space.
std::string SanitizedText(std::string_view text, std::size_t max_bytes);

// The same of a thread's name, of which kMaxThreadNameBytes are kept.
std::string SanitizedThreadName(std::string_view name);

// `text` with every byte that is not part of valid UTF-8 replaced by '?'. proto3 refuses a whole
// message for one bad string.
std::string ValidUtf8(std::string_view text);

}  // namespace strobe
