#include "letters.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace strobe::internal {

void AppendUtf8(std::string& text, std::uint32_t c) {
  const auto add = [&text](std::uint32_t byte) { text += static_cast<char>(byte); };
  const auto add_rest = [&](int shift) { add(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) return add(c);
  if (c < 0x800) {
    add(0xC0 | c >> 6);
  } else if (c < 0x10000) {
    add(0xE0 | c >> 12);
    add_rest(6);
  } else {
    add(0xF0 | c >> 18);
    add_rest(12);
    add_rest(6);
  }
  add_rest(0);
}

std::string FromPunycode(std::string_view text) {
  constexpr std::uint64_t kBase = 36, kLeast = 1, kMost = 26, kSkew = 38, kDamp = 700;
  constexpr std::size_t kMaxLetters = 256;
  const std::size_t mark = text.rfind('_');
  std::vector<std::uint32_t> letters;
  if (mark != std::string_view::npos) {
    letters.assign(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(mark));
    text.remove_prefix(mark + 1);
  }
  std::uint64_t c = 128, place = 0, bias = 72, damp = kDamp;
  while (!text.empty()) {
    std::uint64_t delta = 0, weight = 1;
    for (std::uint64_t k = kBase;; k += kBase) {
      if (text.empty() || weight > UINT32_MAX) return {};
      const char letter = text.front();
      text.remove_prefix(1);
      if (!IsDigit(letter) && !IsLower(letter)) return {};
      const auto digit =
          static_cast<std::uint64_t>(IsDigit(letter) ? letter - '0' + 26 : letter - 'a');
      delta += digit * weight;
      const std::uint64_t limit = std::clamp(k > bias ? k - bias : kLeast, kLeast, kMost);
      if (digit < limit) break;
      weight *= kBase - limit;
    }
    const std::uint64_t count = letters.size() + 1;
    place += delta;
    c += place / count;
    place %= count;
    if (!IsCodePoint(c) || count > kMaxLetters) return {};
    letters.insert(letters.begin() + static_cast<std::ptrdiff_t>(place),
                   static_cast<std::uint32_t>(c));
    ++place;
    delta = delta / damp + delta / damp / count;
    damp = 2;
    for (bias = 0; delta > (kBase - kLeast) * kMost / 2; bias += kBase) delta /= kBase - kLeast;
    bias += kBase * delta / (delta + kSkew);
  }
  std::string utf8;
  for (const std::uint32_t letter : letters) AppendUtf8(utf8, letter);
  return utf8;
}

}  // namespace strobe::internal
