#include "request_head.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace strobe::internal {
namespace {

constexpr int kBadRequest = 400;
constexpr int kOtherMethod = 405;
constexpr int kLongBody = 413;
constexpr int kOtherVersion = 505;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Takes what stands before `mark` off `text`, and the mark; all of it if there is none.
std::string_view Take(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

std::string_view TakeLine(std::string_view& text) {
  std::string_view line = Take(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view WithoutSpaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// With "%41" as the byte it stands for. A '%' before anything else stands for itself.
std::string Decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      decoded += static_cast<char>(byte);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

void TakeQuery(std::string_view query, PullRequest& request) {
  while (!query.empty()) {
    std::string value(Take(query, '&'));
    std::ranges::replace(value, '+', ' ');
    std::string_view rest = value;
    const std::string_view name = Take(rest, '=');
    if (!name.empty()) request.query.emplace(Decoded(name), Decoded(rest));
  }
}

bool TakeTarget(std::string_view target, PullRequest& request) {
  constexpr std::string_view kScheme = "http://";
  if (absl::StartsWithIgnoreCase(Absl(target), Absl(kScheme))) {
    target.remove_prefix(kScheme.size());
    request.host = target.substr(0, target.find_first_of("/?"));
    target.remove_prefix(request.host.size());
    if (request.host.empty()) return false;
  } else if (!target.starts_with('/')) {
    return false;
  }
  target = Take(target, '#');
  request.path = Decoded(Take(target, '?'));
  TakeQuery(target, request);
  return true;
}

int TakeRequestLine(std::string_view line, PullRequest& request) {
  const std::string_view method = Take(line, ' ');
  const std::string_view target = Take(line, ' ');
  if (method.empty() || target.empty() || !line.starts_with("HTTP/")) return kBadRequest;
  if (line != "HTTP/1.1" && line != "HTTP/1.0") return kOtherVersion;
  if (method != "GET") return kOtherMethod;
  return TakeTarget(target, request) ? 0 : kBadRequest;
}

// Nullopt if it is none, or too long to be one.
std::optional<std::size_t> LengthOf(std::string_view text) {
  std::size_t length = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), length);
  if (error == std::errc::result_out_of_range) return kMaxBodyBytes + 1;
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return length;
}

}  // namespace

std::size_t HeadBytes(std::string_view bytes) {
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos;
       end = bytes.find('\n', end + 1)) {
    const std::string_view rest = bytes.substr(end + 1);
    if (rest.starts_with('\n')) return end + 2;
    if (rest.starts_with("\r\n")) return end + 3;
  }
  return 0;
}

RequestHead RequestHead::Of(std::string_view head) {
  RequestHead result;
  PullRequest& request = result.request;
  const auto refused = [](int status) { return RequestHead{.refusal = status}; };
  const bool has_controls = std::ranges::any_of(head, [](char c) {
    return absl::ascii_iscntrl(static_cast<unsigned char>(c)) && c != '\r' && c != '\n' &&
           c != '\t';
  });
  if (has_controls) return refused(kBadRequest);
  if (const int status = TakeRequestLine(TakeLine(head), request); status != 0)
    return refused(status);
  // Two headers that say different things are how one server is made to see another request than
  // the one before it.
  bool has_host = false;
  bool has_authorization = false;
  const bool names_host = !request.host.empty();
  for (std::string_view line = TakeLine(head); !line.empty(); line = TakeLine(head)) {
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || colon == 0 || line.find_first_of(" \t") < colon)
      return refused(kBadRequest);
    const absl::string_view name = Absl(line.substr(0, colon));
    const std::string_view value = WithoutSpaces(line.substr(colon + 1));
    if (absl::EqualsIgnoreCase(name, "Host")) {
      if (std::exchange(has_host, true)) return refused(kBadRequest);
      if (!names_host) request.host = value;
    } else if (absl::EqualsIgnoreCase(name, "Authorization")) {
      if (std::exchange(has_authorization, true)) return refused(kBadRequest);
      request.authorization = value;
    } else if (absl::EqualsIgnoreCase(name, "Content-Length")) {
      const std::optional<std::size_t> length = LengthOf(value);
      if (!length.has_value()) return refused(kBadRequest);
      if (*length > kMaxBodyBytes) return refused(kLongBody);
    }
  }
  return result;
}

}  // namespace strobe::internal
