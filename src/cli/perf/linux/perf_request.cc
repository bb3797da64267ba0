#include "perf_request.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "perf/perf_header.h"

namespace strobe::internal {
namespace {

constexpr std::uint64_t kContextSwitches = 3;  // of software events
constexpr std::uint64_t kMigrations = 4;
// The time between switches off a CPU and onto it.
constexpr const char* kOffCpu = "off-cpu";
constexpr std::size_t kFirstOfEmulation = 7;  // software events from there on have no samples

// Other names of events.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> kAliases{
    {{"cs", "context-switches"},
     {"faults", "page-faults"},
     {"migrations", "cpu-migrations"},
     {"cpu-cycles", "cycles"},
     {"branch-instructions", "branches"},
     {"idle-cycles-frontend", "stalled-cycles-frontend"},
     {"idle-cycles-backend", "stalled-cycles-backend"}}};

// What needs no right at all.
constexpr const char* kInstead = "Strobe in the program itself needs no such right";

std::optional<PerfRequest> Listed(std::string_view name, std::uint32_t type,
                                  std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return PerfRequest{std::string(name), type, static_cast<std::uint64_t>(found - names.begin())};
}

// "sched:sched_switch": its number is in a file.
absl::StatusOr<PerfRequest> Tracepoint(const std::string& name, const std::string& tracing) {
  const std::size_t colon = name.find(':');
  const std::string path =
      absl::StrCat(tracing, "/events/", name.substr(0, colon), "/", name.substr(colon + 1), "/id");
  PerfRequest request{name, PerfEvent::kTracepoint, 0};
  errno = 0;
  if (name.find("..") == std::string::npos && std::ifstream(path) >> request.config) return request;
  if (errno == EACCES || errno == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("only root may look up the tracepoint ", name, " in ", tracing));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no tracepoint ", name, " in ", tracing, " (is tracefs mounted?)"));
}

std::span<const std::string_view> SoftwareEvents() {
  return std::span(kPerfSoftwareEvents).first(kFirstOfEmulation);
}

absl::Status NoSuchEvent(const std::string& name) {
  std::string known = kOffCpu;
  for (const std::string_view event : SoftwareEvents())
    absl::StrAppend(&known, ", ", std::string(event));
  for (const std::string_view event : kPerfHardwareEvents)
    absl::StrAppend(&known, ", ", std::string(event));
  for (const auto& [alias, event] : kAliases) absl::StrAppend(&known, ", ", std::string(alias));
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no event ", name, ": expected ", known,
      ", or a tracepoint as sched:sched_switch; behind each :u counts the program alone, and :k "
      "the kernel"));
}

absl::StatusOr<PerfRequest> ParseName(std::string_view name, const std::string& tracing) {
  if (name == kOffCpu)
    return PerfRequest{"off_cpu", PerfEvent::kSoftware, kContextSwitches, /*is_off_cpu=*/true};
  const auto alias = std::ranges::find(kAliases, name, [](const auto& pair) { return pair.first; });
  if (alias != kAliases.end()) name = alias->second;
  if (auto found = Listed(name, PerfEvent::kSoftware, SoftwareEvents())) return *found;
  if (auto found = Listed(name, PerfEvent::kHardware, kPerfHardwareEvents)) return *found;
  const std::string text(name);
  return text.find(':') != std::string::npos ? Tracepoint(text, tracing) : NoSuchEvent(text);
}

// Takes ":u", ":k" or ":uk" off the end of `name`, and returns its letters.
std::string_view TakeModifier(std::string_view& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string_view::npos) return {};
  const std::string_view letters = name.substr(colon + 1);
  if (letters.empty() || letters.find_first_not_of("uk") != std::string_view::npos) return {};
  name = name.substr(0, colon);
  return letters;
}

absl::StatusOr<PerfRequest> ParseRequest(std::string_view name, const std::string& tracing) {
  const std::string whole(name);
  const std::string_view letters = TakeModifier(name);
  absl::StatusOr<PerfRequest> request = ParseName(name, tracing);
  if (!request.ok() || letters.empty()) return request;
  request->counts_user = letters.find('u') != std::string_view::npos;
  request->counts_kernel = letters.find('k') != std::string_view::npos;
  if (request->is_of_kernel() && !request->counts_kernel)
    return absl::InvalidArgumentError(
        absl::StrCat(whole, " is never counted: ", request->name, " happens in the kernel"));
  return request;
}

}  // namespace

bool PerfRequest::is_clock() const { return type == PerfEvent::kSoftware && config <= 1; }

bool PerfRequest::has_rate() const { return is_clock() || type == PerfEvent::kHardware; }

bool PerfRequest::is_of_kernel() const {
  return type == PerfEvent::kTracepoint ||
         (type == PerfEvent::kSoftware && (config == kContextSwitches || config == kMigrations));
}

absl::StatusOr<std::vector<PerfRequest>> ParsePerfRequests(std::string_view list,
                                                           const std::string& tracing) {
  std::vector<PerfRequest> requests;
  for (const absl::string_view name :
       absl::StrSplit(absl::string_view(list.data(), list.size()), ',', absl::SkipEmpty())) {
    absl::StatusOr<PerfRequest> request = ParseRequest({name.data(), name.size()}, tracing);
    if (!request.ok()) return request.status();
    const auto same = std::ranges::find_if(requests, [&](const PerfRequest& other) {
      return other.type == request->type && other.config == request->config;
    });
    if (same == requests.end()) {
      requests.push_back(*std::move(request));
      continue;
    }
    same->counts_user = same->counts_user || request->counts_user;
    same->counts_kernel = same->counts_kernel || request->counts_kernel;
    if (same->is_off_cpu != request->is_off_cpu) {
      if (request->is_off_cpu) *same = *std::move(request);
      same->is_switch = true;
    }
  }
  if (requests.empty()) return absl::InvalidArgumentError("no event is named");
  if (requests.size() > kMaxPerfRequests)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxPerfRequests, " events"));
  return requests;
}

std::string RefusalText(const PerfRefusal& refusal) {
  constexpr int kMostForOwnCode = 2;
  const std::string refused = absl::StrCat("perf events of ", refusal.target, " are refused: ");
  switch (refusal.error) {
    case ENOSYS:
      return absl::StrCat(refused, "this kernel has none, or a seccomp filter hides them; ",
                          kInstead);
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return absl::StrCat("this machine does not have the event ", refusal.event,
                          " (virtual machines often lack those of the hardware); task-clock works "
                          "everywhere");
    case ESRCH: return absl::StrCat(refusal.target, " has ended");
    case EMFILE:
    case ENFILE:
      return absl::StrCat(refused,
                          "there are too few descriptors for each event, thread and CPU; raise "
                          "the limit (ulimit -n), or record fewer events");
    case EACCES:
    case EPERM: break;
    default: return absl::StrCat(refused, std::strerror(refusal.error));
  }
  if (!refusal.untraced.empty()) return refused + refusal.untraced;
  // What its level forbids, the kernel refuses by EACCES.
  if (refusal.error == EPERM && refusal.has_filter) {
    return absl::StrCat(
        refused, "a seccomp filter forbids perf_event_open, as those of containers do; ", kInstead);
  }
  if (refusal.is_of_cpus && refusal.paranoid > 0) {
    return absl::StrCat(refused, "kernel.perf_event_paranoid is ", refusal.paranoid,
                        ", and 0 would allow them, as CAP_PERFMON does; run as root, or record one "
                        "of your own processes: strobe record -p PID, or strobe record PROGRAM");
  }
  if (refusal.paranoid > kMostForOwnCode) {
    return absl::StrCat(refused, "kernel.perf_event_paranoid is ", refusal.paranoid,
                        ", and 2 would allow them, as CAP_PERFMON does; ", kInstead);
  }
  return absl::StrCat(refused, "a security module forbids perf_event_open (",
                      std::strerror(refusal.error), "); ", kInstead);
}

std::string KernelRefusalText(const std::string& event, int paranoid) {
  const std::string is =
      paranoid == PerfRefusal::kNoParanoid ? "" : absl::StrCat("is ", paranoid, ", and ");
  return absl::StrCat(
      event, " happens in the kernel, which this user may not see: ", "kernel.perf_event_paranoid ",
      is, "must be 1 or less, or run as root; task-clock and page-faults need neither");
}

}  // namespace strobe::internal
