// The values that the options of HTTP exporters accept: see core/settings/option_rows.h.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "strobe/core/settings/secret.h"
#include "strobe/http/http_options.h"

namespace strobe::internal {

// The longest value of a header, a key or a label.
inline constexpr std::size_t kMaxValueBytes = 8192;

// True if `text` may stand in a header: no control character, no line break.
inline bool IsHeaderValue(std::string_view text) {
  if (text.size() > kMaxValueBytes) return false;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) return false;
  }
  return true;
}

// True if `text` may name a header.
inline bool IsHeaderName(std::string_view text) {
  constexpr std::string_view kMore = "!#$%&'*+-.^_`|~";
  if (text.empty() || text.size() > kMaxValueBytes) return false;
  for (const char c : text) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_plain && kMore.find(c) == std::string_view::npos) return false;
  }
  return true;
}

// A name, a token, a list: any text of one line.
struct Line {
  std::string_view text;
  [[nodiscard]] bool Accepts(const std::string& value) const { return IsHeaderValue(value); }
  [[nodiscard]] bool Accepts(const Secret& value) const { return IsHeaderValue(value.Reveal()); }
};

// A server's URL, or nothing.
struct Url {
  std::string_view text;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return value.empty() || ParseServerUrl(value).ok();
  }
  [[nodiscard]] bool Accepts(const Secret& value) const { return Accepts(value.Reveal()); }
};

// A URL, or "host:port", which stands for http.
struct ProxyUrl {
  std::string_view text;
  [[nodiscard]] bool Accepts(const Secret& value) const {
    if (value.empty()) return true;
    const std::string& proxy = value.Reveal();
    const auto url =
        ParseServerUrl(proxy.find("://") == std::string::npos ? "http://" + proxy : proxy);
    return url.ok() && url->unix_socket.empty() && url->file.empty();
  }
};

// "key:value,key:value" or "key=value,key=value".
struct Pairs {
  std::string_view text;
  char between;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return IsHeaderValue(value) && ParsePairs(value, between).ok();
  }
  [[nodiscard]] bool Accepts(const Secret& value) const { return Accepts(value.Reveal()); }
};

// A host's name or address.
struct Host {
  std::string_view text;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    const auto url = ParseServerUrl("http://" + value);
    return url.ok() && url->url == "http://" + value &&
           value.find_first_of("/?") == std::string::npos;
  }
};

inline constexpr Line kLine{"a line of up to 8192 bytes"};
inline constexpr Url kUrl{
    "a URL that begins with http://, https://, unix:/// or file:///, or nothing"};
inline constexpr Pairs kColonPairs{"key:value,key:value", ':'};
inline constexpr Pairs kEqualPairs{"key=value,key=value", '='};

}  // namespace strobe::internal
