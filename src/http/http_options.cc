#include "strobe/http/http_options.h"

#include <array>
#include <charconv>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "no_proxy.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/http/option_values.h"

namespace strobe {
namespace {

using internal::Between;
using internal::FieldRow;
using internal::Path;
using internal::ProxyUrl;

constexpr Between<double> kTimeout{0.01, 600, "a number from 0.01 to 600"};
constexpr Between<std::int64_t> kAttempts{1, 10, "an integer from 1 to 10"};
constexpr Path kOptionalPath{"a path of up to 4095 bytes", true};
constexpr Between<std::int64_t> kSpoolBytes{65536, 1099511627776,
                                            "an integer from 65536 to 1099511627776"};
constexpr Between<double> kSpoolAge{1, 31536000, "a number from 1 to 31536000"};
constexpr ProxyUrl kProxy{"host:port, a URL that begins with http:// or https://, or nothing"};

constexpr std::array kHttpTable = {
    FieldRow<HttpOptions, &HttpOptions::timeout_s, kTimeout>(
        "STROBE_HTTP_TIMEOUT_S", "http.timeout_s",
        "How long one export may take, with its retries."),
    FieldRow<HttpOptions, &HttpOptions::attempts, kAttempts>(
        "STROBE_HTTP_ATTEMPTS", "http.attempts", "Tries of one export."),
    FieldRow<HttpOptions, &HttpOptions::spool_directory, kOptionalPath>(
        "STROBE_SPOOL_DIRECTORY", "http.spool_directory",
        "Where profiles wait on disk for a server that does not answer; empty keeps them in "
        "memory."),
    FieldRow<HttpOptions, &HttpOptions::spool_bytes, kSpoolBytes>(
        "STROBE_SPOOL_BYTES", "http.spool_bytes",
        "Bytes of the profiles that wait there; the oldest are dropped."),
    FieldRow<HttpOptions, &HttpOptions::spool_age_s, kSpoolAge>(
        "STROBE_SPOOL_AGE_S", "http.spool_age_s", "Profiles that have waited longer are dropped."),
    FieldRow<HttpOptions, &HttpOptions::ca_file, kOptionalPath>(
        "STROBE_CA_FILE", "http.ca_file",
        "Certificates (PEM) to check servers with; empty takes the system's."),
    // Lower case only: in a CGI program, HTTP_PROXY comes from a header of the request.
    FieldRow<HttpOptions, &HttpOptions::http_proxy, kProxy>("http_proxy", "http.http_proxy",
                                                            "The proxy for http:// URLs."),
    FieldRow<HttpOptions, &HttpOptions::https_proxy, kProxy>("HTTPS_PROXY", "http.https_proxy",
                                                             "The proxy for https:// URLs."),
    FieldRow<HttpOptions, &HttpOptions::https_proxy, kProxy>("https_proxy", "http.https_proxy",
                                                             "The proxy for https:// URLs."),
    FieldRow<HttpOptions, &HttpOptions::no_proxy, kOptionalPath>(
        "NO_PROXY", "http.no_proxy", "Hosts that no proxy is used for."),
    FieldRow<HttpOptions, &HttpOptions::no_proxy, kOptionalPath>(
        "no_proxy", "http.no_proxy", "Hosts that no proxy is used for."),
};

bool IsControlOrSpace(char c) {
  return static_cast<unsigned char>(c) <= 0x20 || static_cast<unsigned char>(c) == 0x7F;
}

// The host of a URL without user: "example.com", "[::1]".
std::string_view HostOf(std::string_view url) {
  const std::size_t begin = url.find("://") + 3;
  std::string_view host = url.substr(begin, url.find_first_of("/?#", begin) - begin);
  const std::size_t bracket = host.rfind(']');
  const std::size_t colon = host.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket))
    host = host.substr(0, colon);
  return host;
}

bool IsPort(std::string_view text) {
  int port = 0;
  return text.find_first_not_of("0123456789") == std::string_view::npos &&
         absl::SimpleAtoi(absl::string_view(text.data(), text.size()), &port) && port >= 1 &&
         port <= 65535;
}

// Checks "host" or "host:port".
bool IsAuthority(std::string_view text) {
  const std::size_t bracket = text.rfind(']');
  const std::size_t colon = text.rfind(':');
  if (colon != std::string_view::npos && (bracket == std::string_view::npos || colon > bracket)) {
    if (!IsPort(text.substr(colon + 1))) return false;
    text = text.substr(0, colon);
  }
  return !text.empty() && text.find_first_of("@\\\"<>^`{|}") == std::string_view::npos;
}

absl::StatusOr<ServerUrl> ParseHttpUrl(std::string_view text) {
  const std::size_t begin = text.find("://") + 3;
  const std::size_t end = std::min(text.find_first_of("/?#", begin), text.size());
  std::string_view authority = text.substr(begin, end - begin);
  ServerUrl url;
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    auto user = internal::PercentDecoded(authority.substr(0, at));
    if (!user.ok()) return absl::InvalidArgumentError("the URL's user is not encoded as in URLs");
    url.authorization = HttpHeader{
        .name = "Authorization", .value = "Basic " + internal::Base64(*user), .is_secret = true};
    authority.remove_prefix(at + 1);
  }
  if (!IsAuthority(authority))
    return absl::InvalidArgumentError("the URL has no host, or a wrong port");
  const std::string_view rest = text.substr(end, text.find('#', end) - end);
  url.url =
      absl::StrCat(std::string(text.substr(0, begin)), std::string(authority), std::string(rest));
  return url;
}

}  // namespace

std::span<const HttpOptionRow> HttpOptionTable() { return kHttpTable; }

absl::Status Validate(const HttpOptions& options) {
  return internal::CheckRows(HttpOptionTable(), options);
}

absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text) {
  constexpr std::size_t kMaxUrlBytes = 4096;
  if (text.empty()) return absl::InvalidArgumentError("the URL is empty");
  if (text.size() > kMaxUrlBytes) return absl::InvalidArgumentError("the URL is too long");
  for (const char c : text) {
    if (IsControlOrSpace(c))
      return absl::InvalidArgumentError("the URL has a space or a control character");
  }
  for (const std::string_view scheme : {"unix://", "file://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string path(text.substr(scheme.size()));
    if (!path.starts_with('/'))
      return absl::InvalidArgumentError("the URL's path does not begin at the root");
    return scheme == "file://" ? ServerUrl{.file = path}
                               : ServerUrl{.url = "http://localhost", .unix_socket = path};
  }
  if (text.starts_with("http://") || text.starts_with("https://")) return ParseHttpUrl(text);
  return absl::InvalidArgumentError(
      "the URL begins with neither http://, https://, unix:// nor file://");
}

std::string ShownUrl(std::string_view url) {
  return std::string(url.substr(0, url.find_first_of("?#")));
}

std::string WithPath(std::string_view url, std::string_view path) {
  const std::size_t end = std::min(url.find('?'), url.size());
  std::string_view base = url.substr(0, end);
  while (base.ends_with('/')) base.remove_suffix(1);
  return absl::StrCat(std::string(base), base.ends_with(path) ? "" : std::string(path),
                      std::string(url.substr(end)));
}

HttpClientOptions ClientOptionsFor(const HttpOptions& options, std::string_view url) {
  const bool is_tls = url.starts_with("https://");
  HttpClientOptions result{.ca_file = *options.ca_file,
                           .proxy = (is_tls ? *options.https_proxy : *options.http_proxy).Reveal()};
  if (internal::IsWithoutProxy(*options.no_proxy, HostOf(url))) result.proxy.clear();
  // "proxy:3128", as many programs take it.
  if (!result.proxy.empty() && result.proxy.find("://") == std::string::npos)
    result.proxy = absl::StrCat("http://", result.proxy);
  return result;
}

namespace internal {

absl::StatusOr<std::vector<KeyValue>> ParsePairs(std::string_view text, char between) {
  std::vector<KeyValue> pairs;
  for (std::size_t number = 1; !text.empty(); ++number) {
    std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (part.empty()) continue;
    const std::size_t split = part.find(between);
    if (split == std::string_view::npos || split == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("part ", number, " is not key", std::string(1, between), "value"));
    }
    pairs.push_back({std::string(part.substr(0, split)), std::string(part.substr(split + 1))});
  }
  return pairs;
}

absl::StatusOr<std::string> PercentDecoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    const std::string_view digits = text.substr(i + 1, 2);
    unsigned char byte = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (digits.size() != 2 || error != std::errc() || end != digits.data() + digits.size())
      return absl::InvalidArgumentError("a % is not followed by two hexadecimal digits");
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

std::string PercentEncoded(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') ||
                          std::string_view("-._~").find(c) != std::string_view::npos;
    if (is_plain) {
      encoded += c;
    } else {
      encoded += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return encoded;
}

std::string Base64(std::string_view bytes) {
  return absl::Base64Escape(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace internal
}  // namespace strobe
