// AppendMarkupText: a text of a profile as the content of an element of HTML or SVG.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace strobe::internal {

// Appends `text`, which has no control characters, to `markup`. XML refuses the two characters
// U+FFFE and U+FFFF: each becomes a question mark.
inline void AppendMarkupText(std::string& markup, std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view character = text.substr(i, 3);
    if (character == "\uFFFE" || character == "\uFFFF") {
      markup += '?';
      i += 2;
      continue;
    }
    switch (text[i]) {
      case '<': markup += "&lt;"; break;
      case '>': markup += "&gt;"; break;
      case '&': markup += "&amp;"; break;
      default: markup += text[i];
    }
  }
}

}  // namespace strobe::internal
