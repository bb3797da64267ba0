// events: what `strobe record -e` can count, and which of it this machine counts for this user.
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"
#include "commands/command_line.h"
#include "perf/perf_event_table.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kHereColumns = 9;

// 0, or the errno by which the kernel refuses samples of the event of this thread. A counter that
// makes no interrupts has none.
int TryToSample(const KnownPerfEvent& event, bool counts_kernel) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.sample_period = std::uint64_t{1} << 30;  // none is taken
  attributes.disabled = 1;
  attributes.exclude_kernel = !counts_kernel;
  attributes.exclude_hv = 1;
  const Descriptor opened(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
  return opened.is_open() ? 0 : errno;
}

std::string_view CountsHere(const KnownPerfEvent& event) {
  int error = TryToSample(event, true);
  if (error == EACCES && !IsOfKernel(event.type, event.config)) error = TryToSample(event, false);
  switch (error) {
    case 0: return "yes";
    case EACCES:
    case EPERM:
    case ENOSYS: return "refused";
    default: return "no";
  }
}

std::string OtherNames(const KnownPerfEvent& event) {
  std::string names;
  VisitNames(event, [&](std::string_view name) {
    if (name != event.name) absl::StrAppend(&names, names.empty() ? "" : ", ", std::string(name));
  });
  return names;
}

Text EventsText() {
  std::size_t name_columns = 0;
  std::size_t other_columns = 0;
  for (const KnownPerfEvent& event : kPerfEventTable) {
    if (!IsRecordable(event)) continue;
    name_columns = std::max(name_columns, event.name.size() + 2);
    other_columns = std::max(other_columns, OtherNames(event).size() + 2);
  }
  const auto row = [&](std::string_view name, std::string_view here, std::string_view others,
                       std::string_view counts) {
    return absl::StrCat(Left(name, name_columns), Left(here, kHereColumns),
                        Left(others, other_columns), std::string(counts), "\n");
  };
  std::string text = row("event", "here", "also", "counts");
  for (const KnownPerfEvent& event : kPerfEventTable) {
    if (IsRecordable(event))
      text += row(event.name, CountsHere(event), OtherNames(event), event.counts);
  }
  absl::StrAppend(
      &text,
      "sched:sched_switch, and any other tracepoint: strobe record -e GROUP:NAME\n"
      "kmem:kmalloc/bytes_alloc/, the sum of a tracepoint's field: -e GROUP:NAME/FIELD/\n");
  return text;
}

}  // namespace

void AddEvents(CommandLine& line) {
  line.AddText("events", "Lists the events of strobe record -e, and which this machine counts",
               [] { return EventsText(); });
}

}  // namespace strobe::internal
