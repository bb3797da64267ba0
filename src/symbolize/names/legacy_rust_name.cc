#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "letters.h"
#include "rust_names.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kHashDigits = 16;

// What a word between two '$' stands for; nullopt if it is none.
std::optional<std::string> LegacyLetter(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kWords{{{"SP", "@"},
                                                                                 {"BP", "*"},
                                                                                 {"RF", "&"},
                                                                                 {"LT", "<"},
                                                                                 {"GT", ">"},
                                                                                 {"LP", "("},
                                                                                 {"RP", ")"},
                                                                                 {"C", ","}}};
  for (const auto& [known, letter] : kWords) {
    if (word == known) return std::string(letter);
  }
  std::uint32_t c = 0;
  if (!word.starts_with('u') || word.size() > 7 ||
      !absl::SimpleHexAtoi(absl::string_view(word.data() + 1, word.size() - 1), &c) ||
      !IsCodePoint(c) || c < 0x20)
    return std::nullopt;
  std::string text;
  AppendUtf8(text, c);
  return text;
}

}  // namespace

std::string LegacyRustName(std::string_view demangled) {
  constexpr std::string_view kHash = "::h";
  const std::size_t hash = demangled.rfind(kHash);
  if (hash == std::string_view::npos || hash + kHash.size() + kHashDigits != demangled.size() ||
      !std::ranges::all_of(demangled.substr(hash + kHash.size()), IsHexDigit))
    return std::string(demangled);
  demangled = demangled.substr(0, hash);
  std::string name;
  while (!demangled.empty()) {
    const bool is_begin = name.empty() || name.ends_with("::");
    const std::size_t end = demangled.front() == '$' ? demangled.find('$', 1) : 0;
    std::optional<std::string> letter;
    if (end != 0 && end != std::string_view::npos)
      letter = LegacyLetter(demangled.substr(1, end - 1));
    if (letter) {
      name += *letter;
      demangled.remove_prefix(end + 1);
    } else if (is_begin && demangled.starts_with("_$")) {
      demangled.remove_prefix(1);
    } else if (demangled.starts_with("..")) {
      name += "::";
      demangled.remove_prefix(2);
    } else {
      name += demangled.front();
      demangled.remove_prefix(1);
    }
  }
  return name;
}

}  // namespace strobe::internal
