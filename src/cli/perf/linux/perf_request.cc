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
#include "perf/perf_event_table.h"
#include "perf/perf_header.h"
#include "tracepoint_format.h"

namespace strobe::internal {
namespace {

constexpr const char* kOffCpuColumn = "off_cpu";

// What other profilers count by names of events, and `strobe record` by options of its own.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOptionsInstead{
    {{"ALLOC", "--alloc"}, {"sALLOC", "--alloc"}, {"alloc", "--alloc"}, {"sWALL", "--wall"}}};

// What needs no right at all.
constexpr const char* kInstead = "Strobe in the program itself needs no such right";

// Why a file of a tracepoint, with that errno, cannot be read.
absl::Status NoTracepoint(const std::string& name, const std::string& tracing, int error) {
  if (error == EACCES || error == EPERM) {
    return absl::PermissionDeniedError(
        absl::StrCat("only root may look up the tracepoint ", name, " in ", tracing));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("there is no tracepoint ", name, " in ", tracing, " (is tracefs mounted?)"));
}

// The field of a tracepoint whose directory that is.
absl::StatusOr<TracepointField> FieldOf(const std::string& name, const std::string& field,
                                        const std::string& directory, const std::string& tracing) {
  errno = 0;
  std::ifstream file(directory + "/format", std::ios::binary);
  std::string text(kMaxFormatBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.empty()) return NoTracepoint(name, tracing, errno);
  absl::StatusOr<TracepointField> found = ParseTracepointField(text, field);
  if (found.ok()) return found;
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", found.status().message()));
}

// "sched:sched_switch" or "kmem:kmalloc/bytes_alloc/": the number and the field are in files.
absl::StatusOr<PerfRequest> Tracepoint(const std::string& text, const std::string& tracing) {
  const std::size_t slash = text.find('/');
  const std::string name = text.substr(0, slash);
  const std::size_t colon = name.find(':');
  const std::string directory =
      absl::StrCat(tracing, "/events/", name.substr(0, colon), "/", name.substr(colon + 1));
  PerfRequest request{name, PerfEvent::kTracepoint, 0};
  errno = 0;
  if (name.find("..") != std::string::npos || !(std::ifstream(directory + "/id") >> request.config))
    return NoTracepoint(name, tracing, errno);
  if (slash == std::string::npos) return request;
  std::string field = text.substr(slash + 1);
  if (!field.ends_with('/') || field.size() < 2 || field.find('/') + 1 != field.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(text, ": expected a field between two slashes, as kmem:kmalloc/bytes_alloc/"));
  }
  field.pop_back();
  const absl::StatusOr<TracepointField> found = FieldOf(name, field, directory, tracing);
  if (!found.ok()) return found.status();
  request.name = absl::StrCat(name, "/", field);
  request.field = *found;
  return request;
}

absl::Status NoSuchEvent(const std::string& name) {
  for (const auto& [other, option] : kOptionsInstead) {
    if (name == other)
      return absl::InvalidArgumentError(
          absl::StrCat(name, " is no event of the kernel's: a preloaded library samples it, by ",
                       std::string(option), " in place of -e"));
  }
  std::string known;
  for (const KnownPerfEvent& event : kPerfEventTable) {
    if (IsRecordable(event))
      absl::StrAppend(&known, known.empty() ? "" : ", ", std::string(event.name));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no event ", name, ": expected ", known,
      ", or a tracepoint as sched:sched_switch; behind each :u counts the program alone, and :k "
      "the kernel; strobe events has their other names"));
}

absl::StatusOr<PerfRequest> ParseName(std::string_view name, const std::string& tracing) {
  for (const KnownPerfEvent& event : kPerfEventTable) {
    bool is_meant = false;
    VisitNames(event, [&](std::string_view one) { is_meant = is_meant || one == name; });
    if (!is_meant || !IsRecordable(event)) continue;
    return PerfRequest{event.is_off_cpu ? kOffCpuColumn : std::string(event.name), event.type,
                       event.config, event.is_off_cpu};
  }
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

bool PerfRequest::has_rate() const {
  return is_clock() || type == PerfEvent::kHardware || type == PerfEvent::kCache;
}

bool PerfRequest::is_of_kernel() const { return IsOfKernel(type, config); }

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
    if (same->field && request->field && same->field != request->field) {
      return absl::InvalidArgumentError(absl::StrCat(
          same->name, " and ", request->name,
          " are fields of one tracepoint, whose samples have one amount: name one of them"));
    }
    if (request->field) {
      same->field = request->field;
      same->name = request->name;
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

namespace {

std::string OtherRefusal(const PerfRefusal& refusal) {
  if (refusal.most_hz == 0) return std::strerror(refusal.error);
  return absl::StrCat("the kernel takes at most ", refusal.most_hz,
                      " samples a second (kernel.perf_event_max_sample_rate): -F ",
                      refusal.most_hz);
}

}  // namespace

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
    default: return absl::StrCat(refused, OtherRefusal(refusal));
  }
  if (!refusal.untraced.empty()) return refused + refusal.untraced;
  if (refusal.has_field && refusal.error == EPERM && !refusal.has_filter) {
    const std::string is = refusal.paranoid == PerfRefusal::kNoParanoid
                               ? ""
                               : absl::StrCat("is ", refusal.paranoid, ", and ");
    return absl::StrCat(
        refused, "the fields of a tracepoint are root's to see: ", "kernel.perf_event_paranoid ",
        is, "-1 would allow them, as CAP_PERFMON does; run as root");
  }
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
