#include "profile_comments.h"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strobe/core/stack.h"
#include "strobe/core/stats.h"

namespace strobe::internal {
namespace {

std::string_view StackEndName(StackEnd end) {
  switch (end) {
    case StackEnd::kComplete: return "complete";
    case StackEnd::kTruncated: return "truncated";
    case StackEnd::kBroken: return "broken";
    case StackEnd::kNoUnwindInfo: return "no unwind info";
  }
  return "unknown";
}

// "12 (ring full 10, nested 2)", or "0".
template <class Counts, class Name>
std::string Breakdown(const Counts& counts, Name name) {
  std::uint64_t total = 0;
  std::string parts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == 0) continue;
    total += counts[i];
    absl::StrAppend(&parts, parts.empty() ? "" : ", ", std::string(name(i)), " ", counts[i]);
  }
  return parts.empty() ? "0" : absl::StrCat(total, " (", parts, ")");
}

std::string Milliseconds(std::int64_t duration_ns) { return absl::StrFormat("%.3f ms", static_cast<double>(duration_ns) / 1e6); }

}  // namespace

std::vector<std::string> ProfileComments(const Profile& profile) {
  const Stats& stats = profile.stats;
  std::vector<std::string> comments = {
      absl::StrCat("strobe: program ", profile.program, ", process ", profile.process_id, ", period ", profile.sequence),
      absl::StrCat("samples: ", stats.samples),
      "drops: " + Breakdown(stats.drops, [](std::size_t i) { return DropReasonName(static_cast<DropReason>(i)); }),
      "stack ends: " + Breakdown(stats.stack_ends, [](std::size_t i) { return StackEndName(static_cast<StackEnd>(i)); }),
  };
  if (stats.asked_rate_hz > 0) {
    comments.push_back(absl::StrFormat("rate: %.2f Hz asked, %.2f Hz achieved", stats.asked_rate_hz, stats.achieved_rate_hz));
  }
  comments.push_back(absl::StrCat("handler time: ", Milliseconds(stats.handler_time_ns), " (estimated)"));
  comments.push_back(absl::StrCat("collector CPU: ", Milliseconds(stats.collector_cpu_ns), " in ", stats.drains, " drains"));
  comments.push_back(absl::StrFormat("memory: %.1f KiB", static_cast<double>(stats.memory_bytes) / 1024));
  comments.push_back(absl::StrCat("threads: ", stats.threads_registered, " registered, ", stats.threads_refused, " refused, ",
                                  stats.threads_on_fallback, " without a timer"));
  // What follows is not the rule, and so is said only where it happened.
  const auto add_unless_zero = [&](std::string_view what, std::uint64_t count) {
    if (count != 0) comments.push_back(absl::StrCat(std::string(what), ": ", count));
  };
  add_unless_zero("samples folded for want of memory", stats.stacks_folded);
  add_unless_zero("stacks finished by the collector", stats.stacks_deferred);
  add_unless_zero("signals of others", stats.signals_foreign);
  add_unless_zero("late signals", stats.signals_stale);
  add_unless_zero("handler replaced", stats.handler_replaced);
  add_unless_zero("waits abandoned", stats.waits_abandoned);
  add_unless_zero("exports failed", stats.exports_failed);
  add_unless_zero("periods extended", stats.periods_extended);
  return comments;
}

}  // namespace strobe::internal
