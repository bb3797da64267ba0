// PerfRequest: an event that the user has asked for. PerfRefusal: why it is refused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "perf/perf_header.h"

namespace strobe::internal {

struct PerfRequest {
  std::string name;
  std::uint32_t type = 0;  // see PerfEvent
  std::uint64_t config = 0;
  bool is_off_cpu = false;  // see PerfEvent
  bool is_switch = false;
  // See PerfEvent.
  std::optional<TracepointField> field{};
  // Whether it counts what programs do themselves, and what the kernel does for them.
  bool counts_user = true;
  bool counts_kernel = true;

  // True if samples come at a rate; else for every so many events.
  [[nodiscard]] bool has_rate() const;
  [[nodiscard]] bool is_clock() const;
  // True if it happens in the kernel only.
  [[nodiscard]] bool is_of_kernel() const;
};

inline constexpr std::size_t kMaxPerfRequests = 16;

// The events of a list as "task-clock,page-faults:u,sched:sched_switch,kmem:kmalloc/bytes_alloc/",
// by the names of kPerfEventTable; ":u" counts the program alone, ":k" the kernel. Between slashes
// is the field of a tracepoint that a sample's amount is. Two of one event become one, because the
// kernel gives the samples of both the id of one. Tracepoints are below `tracing`, a directory as
// /sys/kernel/tracing. InvalidArgument for a name that is none, with what is to be done where it
// cannot be looked up.
absl::StatusOr<std::vector<PerfRequest>> ParsePerfRequests(std::string_view list,
                                                           const std::string& tracing);

// What is known when perf_event_open(2) fails.
struct PerfRefusal {
  int error = 0;  // errno
  std::string event;
  std::string target;          // "process 12", "the command"
  int paranoid = kNoParanoid;  // kernel.perf_event_paranoid
  bool has_filter = false;     // this process is under a seccomp filter
  bool is_of_cpus = false;     // the target is all that runs
  bool has_field = false;      // the event is a tracepoint's field
  int most_hz = 0;             // the kernel's limit, where more was asked for
  std::string untraced{};      // why this user may not look into the target; empty if it may

  static constexpr int kNoParanoid = -100;  // it cannot be read
};
// One sentence: which setting forbids it, and what works instead.
std::string RefusalText(const PerfRefusal& refusal);
// The same for events of the kernel, where only a program's own part may be seen.
std::string KernelRefusalText(const std::string& event, int paranoid);

}  // namespace strobe::internal
