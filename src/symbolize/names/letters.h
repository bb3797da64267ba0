// Letters in names that compilers have written, and what is beyond ASCII in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strobe::internal {

inline bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
inline bool IsHexDigit(char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); }

// True if Unicode may have a letter of that number.
inline bool IsCodePoint(std::uint64_t c) { return c < 0x110000 && (c < 0xD800 || c > 0xDFFF); }
// `c` must be one.
void AppendUtf8(std::string& text, std::uint32_t c);

// A name in Punycode (RFC 3492) with '_' for '-', as UTF-8. Empty if it is none, or has more than
// 256 letters.
std::string FromPunycode(std::string_view text);

}  // namespace strobe::internal
