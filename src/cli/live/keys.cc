#include "keys.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace strobe::internal {
namespace {

constexpr char kEscape = '\033';
constexpr char kDelete = '\177';

// The bytes of the sequence that `text` begins with, behind an escape character; 0 if it is none.
std::size_t SequenceBytes(std::string_view text) {
  if (text.starts_with('O')) return std::min<std::size_t>(text.size(), 2);
  if (!text.starts_with('[')) return 0;
  const auto is_end = [](char c) { return c >= '@' && c <= '~'; };
  const auto end = std::find_if(text.begin() + 1, text.end(), is_end);
  return static_cast<std::size_t>(end - text.begin()) + (end == text.end() ? 0 : 1);
}

// Of the character that begins so; 0 if none does.
std::size_t CharacterBytes(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xC0) return 0;
  return byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool IsContinued(std::string_view behind) {
  return std::ranges::all_of(behind,
                             [](char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; });
}

}  // namespace

std::vector<Key> KeyReader::Take(std::string_view bytes) {
  const std::string all = std::exchange(rest_, {}).append(bytes);
  std::vector<Key> keys;
  for (std::size_t i = 0; i < all.size();) {
    const char c = all[i];
    std::size_t size = 1;
    if (c == kEscape) {
      const std::size_t sequence = SequenceBytes(std::string_view(all).substr(i + 1));
      if (sequence == 0) keys.push_back({Key::Kind::kEscape});
      size += sequence;
    } else if (c == '\r' || c == '\n') {
      keys.push_back({Key::Kind::kEnter});
    } else if (c == kDelete || c == '\b') {
      keys.push_back({Key::Kind::kBackspace});
    } else if (static_cast<unsigned char>(c) >= ' ') {
      const std::size_t whole = CharacterBytes(c);
      const std::string text = all.substr(i, whole);
      if (whole > 0 && IsContinued(std::string_view(text).substr(1))) {
        size = whole;
        if (text.size() < whole) {
          rest_ = text;
        } else {
          keys.push_back({Key::Kind::kCharacter, text});
        }
      }
    }
    i += size;
  }
  return keys;
}

}  // namespace strobe::internal
