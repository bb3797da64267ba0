#include "strobe/core/thread_info.h"

#include <algorithm>

namespace strobe {
namespace {

// Length of the valid UTF-8 sequence at the front of `text` (Unicode 15, table 3-7), or 0.
std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first < 0xC2   ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (first == 0xE0 && byte(1) < 0xA0) return 0;  // overlong
  if (first == 0xED && byte(1) > 0x9F) return 0;  // surrogates
  if (first == 0xF0 && byte(1) < 0x90) return 0;  // overlong
  if (first == 0xF4 && byte(1) > 0x8F) return 0;  // beyond U+10FFFF
  return length;
}

}  // namespace

std::string ValidUtf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    if (length == 0) {
      result += '?';
    } else {
      result += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return result;
}

std::string SanitizedText(std::string_view text, std::size_t max_bytes) {
  // Four bytes beyond the limit are enough to see whether the last character is whole.
  const std::string valid = ValidUtf8(text.substr(0, max_bytes + 4));
  std::string result;
  std::string_view rest = valid;
  while (!rest.empty()) {
    const std::size_t length = Utf8Length(rest);
    if (result.size() + length > max_bytes) break;
    const bool is_control =
        length == 1 && (static_cast<unsigned char>(rest[0]) < 0x20 || rest[0] == 0x7F);
    result += is_control ? std::string_view(" ") : rest.substr(0, length);
    rest.remove_prefix(length);
  }
  return result;
}

std::string SanitizedThreadName(std::string_view name) {
  return SanitizedText(name, kMaxThreadNameBytes);
}

}  // namespace strobe
