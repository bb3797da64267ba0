#include "strobe/http/pull_handler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <optional>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "strobe/aggregate/selected_rows.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/http/open_metrics.h"

namespace strobe {
namespace {

using internal::Between;
using internal::FieldRow;

struct ShortLine {
  std::string_view text;
  bool may_be_empty = false;
  [[nodiscard]] bool Accepts(const std::string& value) const {
    return (may_be_empty || !value.empty()) && value.size() <= 255 &&
           std::ranges::all_of(value, [](char c) { return c > 0x20 && c < 0x7F; });
  }
  [[nodiscard]] bool Accepts(const Secret& value) const { return Accepts(value.Reveal()); }
};
constexpr ShortLine kAddress{"an address or a host's name"};
constexpr ShortLine kToken{"up to 255 printable characters without spaces", true};
constexpr Between<std::int64_t> kListeningPort{0, 65535, "an integer from 0 to 65535"};
constexpr Between<std::int64_t> kSeconds{1, 3600, "an integer from 1 to 3600"};

constexpr std::array kPullTable = {
    FieldRow<PullServerOptions, &PullServerOptions::address, kAddress>(
        "STROBE_PULL_ADDRESS", "pull.address", "Where the server listens."),
    FieldRow<PullServerOptions, &PullServerOptions::port, kListeningPort>(
        "STROBE_PULL_PORT", "pull.port", "The server's port; 0 takes one that is free."),
    FieldRow<PullServerOptions, &PullServerOptions::token, kToken>(
        "STROBE_PULL_TOKEN", "pull.token", "What each request needs as its token."),
    FieldRow<PullServerOptions, &PullServerOptions::max_seconds, kSeconds>(
        "STROBE_PULL_MAX_SECONDS", "pull.max_seconds", "The longest recording of a request."),
};

// The recordings by their names, as Go's are, and the value types of each. `needs` says what a
// program adds that does not measure them.
struct Endpoint {
  std::string_view name;
  std::vector<std::string> value_types;
  std::int64_t default_seconds;
  std::string_view description;
  std::string_view needs;
  bool has_rate = false;
};
const std::vector<Endpoint>& Endpoints() {
  constexpr std::string_view kNeedsCpu =
      "set sampling.cpu_frequency_hz (STROBE_CPU_FREQUENCY_HZ=100)";
  constexpr std::string_view kNeedsWall =
      "set sampling.wall_frequency_hz (STROBE_WALL_FREQUENCY_HZ=10)";
  constexpr std::string_view kNeedsAllocations =
      "link strobe-allocations, and use strobe::AllocationTraits with strobe::AllocationSampling";
  constexpr std::string_view kNeedsLocks =
      "link strobe-locks, and use strobe::ContentionTraits with strobe::ContentionSampling";
  static const auto* const endpoints = new std::vector<Endpoint>{
      {"profile", {"samples", "cpu"}, 30, "CPU time", kNeedsCpu, true},
      {"wall", {"wall"}, 30, "wall time", kNeedsWall, true},
      {"allocs", {"alloc_objects", "alloc_space"}, 5, "allocations", kNeedsAllocations},
      {"heap", {"inuse_objects", "inuse_space"}, 5, "live memory", kNeedsAllocations},
      {"mutex", {"contentions", "delay"}, 5, "waits for locks", kNeedsLocks},
      {"block", {"contentions", "delay"}, 5, "waits for locks", kNeedsLocks}};
  return *endpoints;
}

// Those of Go's that no profiler of this kind has, and what is nearest.
std::string_view InPlaceOf(std::string_view name) {
  if (name == "threadcreate")
    return "where threads begin is not recorded; wall has the stacks of all registered threads";
  if (name == "goroutine")
    return "there are no goroutines; wall has the stacks of all registered threads";
  return {};
}

PullResponse Error(int status, std::string_view text) {
  return {.status = status,
          .body = absl::StrCat(std::string(text), "\n"),
          .headers = {{"X-Go-Pprof", "1"}}};
}

int StatusOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument: return 404;  // a value type that is not enabled
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kResourceExhausted: return 503;
    default: return 500;
  }
}

// Text of a request, made printable for an error.
std::string Shown(std::string_view text) {
  return absl::CHexEscape(absl::string_view(text.data(), std::min<std::size_t>(text.size(), 60)));
}

// Reads the parameter, if it is there. Returns what is wrong with it, or an empty text.
std::string ReadInteger(const std::map<std::string, std::string>& query, const char* name,
                        std::int64_t most, std::int64_t& value) {
  const auto found = query.find(name);
  if (found == query.end()) return {};
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= 1 && value <= most)
    return {};
  return absl::StrCat(name, ": expected an integer from 1 to ", most, " instead of ", Shown(text));
}

bool HasLabel(const LabelSet& labels, std::string_view key, std::string_view value) {
  return std::ranges::any_of(labels.labels(), [&](const Label& label) {
    if (label.key != key) return false;
    const auto* const text = std::get_if<std::string>(&label.value);
    return text != nullptr ? *text == value
                           : std::to_string(std::get<std::int64_t>(label.value)) == value;
  });
}

}  // namespace

std::span<const BasicOptionRow<PullServerOptions>> PullServerOptionTable() { return kPullTable; }

PullHandler::PullHandler(PullSource source, std::vector<PullFormat> formats,
                         PullServerOptions options, std::string command_line)
    : source_(std::move(source)),
      formats_(std::move(formats)),
      options_(std::move(options)),
      command_line_(std::move(command_line)) {}

PullResponse PullHandler::Handle(const PullRequest& request) const {
  constexpr std::string_view kBase = "/debug/pprof/";
  if (!IsOwnHost(request.host)) return Error(403, "this server has no such name");
  if (!MayAsk(request.authorization)) {
    PullResponse response = Error(401, "a token is needed");
    response.headers.emplace_back("WWW-Authenticate", "Basic realm=\"strobe\"");
    return response;
  }
  if (request.path == "/metrics") {
    return {.content_type = std::string(kOpenMetricsContentType),
            .body = OpenMetricsText(source_.stats())};
  }
  if (!request.path.starts_with(kBase))
    return Error(404, "there are only /debug/pprof/ and /metrics");
  const std::string_view name = std::string_view(request.path).substr(kBase.size());
  if (name.empty()) return {.content_type = "text/html; charset=utf-8", .body = Index()};
  if (name == "cmdline") return {.body = command_line_};
  for (const Endpoint& endpoint : Endpoints()) {
    if (endpoint.name != name) continue;
    if (request.query.contains("hz") && !endpoint.has_rate)
      return Error(400, absl::StrCat("hz: the samples of ", std::string(name), " have no rate"));
    PullResponse response = Record(request, endpoint.value_types, endpoint.default_seconds);
    if (response.status != 404) return response;
    response.body.pop_back();
    return Error(404, absl::StrCat(response.body, ": ", std::string(endpoint.needs)));
  }
  if (const std::string_view other = InPlaceOf(name); !other.empty())
    return Error(404, std::string(other));
  return Error(404, absl::StrCat("no such profile: ", Shown(name)));
}

PullResponse PullHandler::Record(const PullRequest& request,
                                 const std::vector<std::string>& value_types,
                                 std::int64_t default_seconds) const {
  Wanted wanted{.seconds = default_seconds, .format = &formats_.front()};
  if (const std::string wrong = ReadQuery(request.query, wanted); !wrong.empty())
    return Error(400, wrong);
  const bool wants_last = wanted.last_seconds != 0;
  absl::StatusOr<Profile> profile =
      source_.record({.duration = std::chrono::seconds(wants_last ? 0 : wanted.seconds),
                      .last = std::chrono::seconds(wanted.last_seconds),
                      .value_types = value_types,
                      .frequency_hz = static_cast<double>(wanted.frequency_hz),
                      .cancelled = cancelled_});
  if (!profile.ok()) {
    const absl::string_view message = profile.status().message();
    return Error(StatusOf(profile.status()), {message.data(), message.size()});
  }
  if (cancelled_->load()) return Error(503, "the server ends");
  if (!wanted.label.empty()) {
    const std::size_t split = wanted.label.find('=');
    *profile = internal::WithLabel(*profile, std::string_view(wanted.label).substr(0, split),
                                   std::string_view(wanted.label).substr(split + 1));
  }
  const absl::StatusOr<Symbols> symbols = source_.symbolize(*profile);
  const PullFormat& format = *wanted.format;
  absl::StatusOr<std::string> bytes = format.encode(*profile, symbols.ok() ? *symbols : Symbols());
  if (!bytes.ok()) return Error(500, std::string(bytes.status().message()));
  return {.content_type = format.content_type,
          .body = *std::move(bytes),
          .headers = {{"Content-Disposition",
                       absl::StrCat("attachment; filename=\"profile", format.file_suffix, "\"")}}};
}

// Returns what is wrong with the query, or an empty text.
std::string PullHandler::ReadQuery(const std::map<std::string, std::string>& query,
                                   Wanted& wanted) const {
  std::string wrong = ReadInteger(query, "seconds", *options_.max_seconds, wanted.seconds);
  if (wrong.empty()) {
    wrong = ReadInteger(query, "hz", static_cast<std::int64_t>(kMaxRecordingFrequencyHz),
                        wanted.frequency_hz);
  }
  if (wrong.empty()) {
    wrong =
        ReadInteger(query, "last",
                    std::chrono::duration_cast<std::chrono::seconds>(kMaxRecordingDuration).count(),
                    wanted.last_seconds);
  }
  if (!wrong.empty()) return wrong;
  if (query.contains("last") && (query.contains("seconds") || query.contains("hz")))
    return "last: expected without seconds and hz";
  if (const auto found = query.find("format"); found != query.end()) {
    const auto format = std::ranges::find(formats_, found->second, &PullFormat::name);
    if (format == formats_.end()) {
      std::string names;
      for (const PullFormat& known : formats_) absl::StrAppend(&names, " ", known.name);
      return absl::StrCat("format: expected one of", names);
    }
    wanted.format = &*format;
  }
  if (const auto found = query.find("label"); found != query.end()) {
    if (found->second.find('=') == std::string::npos) return "label: expected key=value";
    wanted.label = found->second;
  }
  return {};
}

std::string PullHandler::Index() const {
  std::string html =
      "<!doctype html><title>Strobe</title><h1>Strobe</h1><p>Profiles of this program:</p><ul>";
  for (const Endpoint& endpoint : Endpoints()) {
    absl::StrAppend(&html, "<li><a href=\"", std::string(endpoint.name), "?seconds=5\">",
                    std::string(endpoint.name), "</a>: ", std::string(endpoint.description),
                    "</li>");
  }
  absl::StrAppend(&html, "</ul><p>Formats (?format=):");
  for (const PullFormat& format : formats_) absl::StrAppend(&html, " ", format.name);
  return html + ". <a href=\"cmdline\">cmdline</a>, <a href=\"/metrics\">metrics</a></p>\n";
}

bool PullHandler::MayAsk(const std::string& authorization) const {
  constexpr std::string_view kBearer = "Bearer ";
  constexpr std::string_view kBasic = "Basic ";
  const std::string& token = options_.token->Reveal();
  if (token.empty()) return true;
  std::string given;
  if (authorization.starts_with(kBearer)) {
    given = authorization.substr(kBearer.size());
  } else if (authorization.starts_with(kBasic) &&
             absl::Base64Unescape(authorization.substr(kBasic.size()), &given)) {
    given = given.substr(given.find(':') + 1);
  }
  return internal::IsEqualInConstantTime(given, token);
}

// On the loopback interface, a web page of elsewhere must not read profiles by a name of its own
// that leads here.
bool PullHandler::IsOwnHost(std::string_view host) const {
  const bool is_loopback = options_.address->starts_with("127.") || *options_.address == "::1" ||
                           *options_.address == "localhost";
  if (!is_loopback || host.empty()) return true;
  if (host.starts_with('[')) {
    host = host.substr(0, host.find(']') + 1);
  } else {
    host = host.substr(0, host.find(':'));
  }
  return host == "localhost" || host == "[::1]" ||
         (host.starts_with("127.") &&
          host.find_first_not_of("0123456789.") == std::string_view::npos);
}

namespace internal {

bool IsEqualInConstantTime(std::string_view given, std::string_view secret) {
  unsigned difference = given.size() == secret.size() ? 0 : 1;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const char expected = secret.empty() ? '\0' : secret[i % secret.size()];
    difference |= static_cast<unsigned char>(given[i]) ^ static_cast<unsigned char>(expected);
  }
  return difference == 0;
}

Profile WithLabel(const Profile& profile, std::string_view key, std::string_view value) {
  return WithRows(profile,
                  [&](std::size_t row) { return HasLabel(profile.Labels(row), key, value); });
}

}  // namespace internal
}  // namespace strobe
