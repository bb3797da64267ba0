// Strobe's strings are UTF-8; the system's functions take UTF-16.
#pragma once

#include <string>
#include <string_view>

namespace strobe::internal {

// What is not valid becomes U+FFFD, in both directions.
std::wstring WideFromUtf8(std::string_view text);
std::string Utf8FromWide(std::wstring_view text);

}  // namespace strobe::internal
