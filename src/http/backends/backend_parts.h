// What the backends share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/label_set.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/core/settings/secret.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/export/exporter.h"
#include "strobe/http/http_backend.h"
#include "strobe/http/http_options.h"
#include "strobe/http/native_http.h"
#include "strobe/http/option_values.h"

namespace strobe::internal {

inline constexpr std::string_view kStrobeVersion = "0.1.0";
inline constexpr std::string_view kUserAgent = "strobe/0.1.0";

// The options with what the environment says where code has set nothing.
template <class Options>
Options WithEnvironment(Options options, std::span<const BasicOptionRow<Options>> table) {
  ApplyRows(HttpOptionTable(), options.http, &NativeEnvironment, &NativeWarn);
  ApplyRows(table, options, &NativeEnvironment, &NativeWarn);
  return options;
}

// The endpoint of the URL `text`, with `path` behind the URL's own. The error names `field`.
inline absl::StatusOr<HttpEndpoint> EndpointOf(std::string_view field, std::string_view text,
                                               std::string_view path) {
  absl::StatusOr<ServerUrl> url = ParseServerUrl(text);
  if (!url.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(field), ": ", url.status().message()));
  }
  HttpEndpoint endpoint{
      .url = WithPath(url->file.empty() ? std::string_view(url->url) : "http://localhost", path),
      .unix_socket = std::move(url->unix_socket),
      .file = std::move(url->file),
      .headers = {{.name = "User-Agent", .value = std::string(kUserAgent)}}};
  if (url->authorization) endpoint.headers.push_back(*std::move(url->authorization));
  return endpoint;
}

// Adds "Authorization: Bearer TOKEN" if there is a token.
inline void AddBearer(HttpEndpoint& endpoint, const Secret& token) {
  if (token.empty()) return;
  endpoint.headers.push_back(
      {.name = "Authorization", .value = "Bearer " + token.Reveal(), .is_secret = true});
}

// Adds the headers of "name=value,name=value", whose values are encoded as in URLs. All are secret.
// The error names `field`.
inline absl::Status AddHeaders(HttpEndpoint& endpoint, std::string_view field,
                               const Secret& headers) {
  const auto pairs = ParsePairs(headers.Reveal(), '=');
  const auto wrong = [field](std::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(field), ": ", std::string(what)));
  };
  if (!pairs.ok()) return wrong(std::string(pairs.status().message()));
  for (const KeyValue& pair : *pairs) {
    absl::StatusOr<std::string> value = PercentDecoded(pair.value);
    if (!value.ok() || !IsHeaderName(pair.key) || !IsHeaderValue(*value))
      return wrong("a header's name or value has a character that it may not have");
    endpoint.headers.push_back({.name = pair.key, .value = *std::move(value), .is_secret = true});
  }
  return absl::OkStatus();
}

// `text` with '_' for each character that labels of Prometheus' kind may not have in their names.
inline std::string LabelName(std::string_view text) {
  std::string name(text);
  for (char& c : name) {
    const bool is_plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!is_plain) c = '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "_");
  return name;
}

// The first that is not empty.
inline std::string FirstOf(const std::string& first, const std::string& second) {
  return first.empty() ? second : first;
}

// A text as a JSON string.
std::string JsonString(std::string_view text);

// The user's labels and, behind them, the machine's whose keys are not among them.
std::vector<KeyValue> WithMachine(std::vector<KeyValue> labels, const LabelSet& machine,
                                  MachinePart part);

}  // namespace strobe::internal
