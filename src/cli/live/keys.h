// KeyReader: the keys that a terminal's bytes stand for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::internal {

struct Key {
  enum class Kind : std::uint8_t { kCharacter, kEnter, kBackspace, kEscape };

  Kind kind{};
  std::string text{};  // of kCharacter: one character of UTF-8

  friend bool operator==(const Key&, const Key&) = default;
};

class KeyReader {
 public:
  // The keys of the bytes that have come at once. Keys that send a sequence (arrows, F1) are left
  // out, and so are control characters. An escape character that nothing follows is the key Esc. A
  // character whose end is still to come is one of the next bytes'.
  std::vector<Key> Take(std::string_view bytes);

 private:
  std::string rest_;  // the begin of a character
};

}  // namespace strobe::internal
