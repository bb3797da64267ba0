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

// Of a valid sequence. Controls of C0 and C1 move a terminal's cursor, or begin commands to it; the
// directional characters show text in another order (Unicode 15: Bidi_Control).
bool IsControl(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  if (sequence.size() == 1) return byte(0) < 0x20 || byte(0) == 0x7F;
  if (sequence.size() == 2) return (byte(0) == 0xC2 && byte(1) < 0xA0) || sequence == "\xD8\x9C";
  if (sequence.size() != 3 || byte(0) != 0xE2) return false;
  return (byte(1) == 0x80 && (byte(2) == 0x8E || byte(2) == 0x8F ||      // marks
                              (byte(2) >= 0xAA && byte(2) <= 0xAE))) ||  // embeddings
         (byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9);        // isolates
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
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c >= 0x20 && c <= 0x7E; });
  if (is_plain) return std::string(text.substr(0, max_bytes));  // most are, and this is fast
  // Four bytes beyond the limit are enough to see whether the last character is whole.
  const std::string valid = ValidUtf8(text.substr(0, max_bytes + 4));
  std::string result;
  std::string_view rest = valid;
  while (!rest.empty()) {
    const std::size_t length = Utf8Length(rest);
    if (result.size() + length > max_bytes) break;
    const std::string_view sequence = rest.substr(0, length);
    result += IsControl(sequence) ? std::string_view(" ") : sequence;
    rest.remove_prefix(length);
  }
  return result;
}

std::string SanitizedThreadName(std::string_view name) {
  return SanitizedText(name, kMaxThreadNameBytes);
}

}  // namespace strobe
