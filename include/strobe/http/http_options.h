// HttpOptions: how the exporters that send profiles over HTTP deliver them, whatever the backend.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/export/http_client.h"

namespace strobe {

struct HttpOptions {
  // How long one export may take, with its retries.
  Option<double> timeout_s = Option<double>::Default{10};
  // Tries of one export. Later tries follow by themselves.
  Option<std::int64_t> attempts = Option<std::int64_t>::Default{3};
  // Where profiles wait on disk for a server that does not answer. Empty: they wait in memory, at
  // most kMaxWaitingProfiles of them, and are lost when the program ends.
  Option<std::string> spool_directory = Option<std::string>::Default{""};
  // Bytes of the profiles that wait on disk; the oldest are dropped.
  Option<std::int64_t> spool_bytes = Option<std::int64_t>::Default{256 * 1024 * 1024};
  // Profiles that have waited longer are dropped.
  Option<double> spool_age_s = Option<double>::Default{24 * 3600};
  // A file of certificates (PEM) that servers' certificates are checked with. Empty: the system's.
  Option<std::string> ca_file = Option<std::string>::Default{""};
  // The proxies for http:// and https:// URLs; empty: none. May have a user and a password.
  Option<Secret> http_proxy = Option<Secret>::Default{{}};
  Option<Secret> https_proxy = Option<Secret>::Default{{}};
  // Hosts that no proxy is used for: "localhost,.example.com", or "*".
  Option<std::string> no_proxy = Option<std::string>::Default{""};
};

using HttpOptionRow = BasicOptionRow<HttpOptions>;
// Every option, its variables, its range. See BasicOptionRow.
std::span<const HttpOptionRow> HttpOptionTable();
absl::Status Validate(const HttpOptions& options);

// A URL that profiles are sent to, in its parts.
struct ServerUrl {
  std::string url = {};          // http://host:port/path?query, without user and password
  std::string unix_socket = {};  // of unix:///path/to.socket; then the URL's host is localhost
  std::string file = {};         // of file:///path; then there is no URL
  std::optional<HttpHeader> authorization = {};  // of http://user:password@host: basic, secret
};
// InvalidArgument says what is wrong, without the user or the password.
absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text);
// The URL as messages show it: no query.
std::string ShownUrl(std::string_view url);
// The URL with `path` behind its own path, if it has not that path already.
std::string WithPath(std::string_view url, std::string_view path);

// The client's options for requests to `url`: which proxy counts.
HttpClientOptions ClientOptionsFor(const HttpOptions& options, std::string_view url);

namespace internal {

// "key:value,key:value" (Datadog), "key=value,key=value" (OpenTelemetry, Pyroscope): pairs, in
// order. InvalidArgument names the part that is none, by its number.
struct KeyValue {
  std::string key;
  std::string value;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};
absl::StatusOr<std::vector<KeyValue>> ParsePairs(std::string_view text, char between);
// Decodes %41; InvalidArgument if it is not valid.
absl::StatusOr<std::string> PercentDecoded(std::string_view text);
// Encodes all but letters, digits and "-._~".
std::string PercentEncoded(std::string_view text);
std::string Base64(std::string_view bytes);

}  // namespace internal
}  // namespace strobe
