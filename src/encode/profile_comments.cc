#include "profile_comments.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "strobe/core/stack.h"
#include "strobe/core/stats.h"
#include "strobe/core/unregistered_threads.h"
#include "strobe/encode/machine_tags.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kMachine = "machine: ";
constexpr std::string_view kBetweenTags = "; ";

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

std::string Milliseconds(std::int64_t duration_ns) {
  return absl::StrFormat("%.3f ms", static_cast<double>(duration_ns) / 1e6);
}

// ": 0.05 % of the process's 12.3 s", if the process's time is known.
std::string ShareOfProcess(const Stats& stats) {
  if (stats.process_cpu_ns <= 0) return "";
  const auto process_ns = static_cast<double>(stats.process_cpu_ns);
  const auto own_ns = static_cast<double>(stats.handler_time_ns + stats.collector_cpu_ns);
  return absl::StrFormat(": %.3f %% of the process's %.3f s", 100 * own_ns / process_ns,
                         process_ns / 1e9);
}

std::string WhatWasProfiled(const Profile& profile) {
  const auto is_sampled = [](const ProfileThread& thread) { return thread.samples != 0; };
  return absl::StrCat("strobe: program ", profile.program, ", process ", profile.process_id,
                      ", period ", profile.sequence,
                      ", threads: ", std::ranges::count_if(profile.threads, is_sampled),
                      " sampled, ", profile.stats.threads_registered, " registered",
                      profile.window.empty() ? "" : "; window: ", profile.window);
}

std::string Cost(const Stats& stats) {
  return absl::StrCat("cost: handler ", Milliseconds(stats.handler_time_ns),
                      " (estimated), collector ", Milliseconds(stats.collector_cpu_ns),
                      " of CPU time in ", stats.drains, " drains", ShareOfProcess(stats),
                      ", memory ",
                      absl::StrFormat("%.1f KiB", static_cast<double>(stats.memory_bytes) / 1024));
}

// How completely the program was sampled.
std::string Quality(const Stats& stats) {
  std::string quality;
  if (stats.requested_rate_hz > 0)
    quality = absl::StrFormat("rate: %.2f Hz requested, %.2f Hz measured; ",
                              stats.requested_rate_hz, stats.measured_rate_hz);
  absl::StrAppend(
      &quality, "samples: ", stats.samples, "; drops: ",
      Breakdown(stats.drops,
                [](std::size_t i) { return DropReasonName(static_cast<DropReason>(i)); }),
      "; stack ends: ", Breakdown(stats.stack_ends, [](std::size_t i) {
        return StackEndName(static_cast<StackEnd>(i));
      }));
  return quality;
}

}  // namespace

// pprof shows these lines before every report: what was profiled, how completely, and at what cost.
std::vector<std::string> ProfileComments(const Profile& profile) {
  const Stats& stats = profile.stats;
  std::string subject = WhatWasProfiled(profile);
  std::string quality = Quality(stats);
  std::string cost = Cost(stats);
  // Exceptions have a line only if they happened.
  const auto add_unless_zero = [](std::string& line, std::string_view what, std::uint64_t count) {
    if (count != 0) absl::StrAppend(&line, "; ", std::string(what), ": ", count);
  };
  add_unless_zero(subject, "on timers", stats.threads_on_timers);
  add_unless_zero(subject, "on random timers", stats.threads_on_random_timers);
  add_unless_zero(subject, "at random instants", stats.threads_at_instants);
  if (stats.threads_at_instants != 0 && stats.max_overhead > 0)
    absl::StrAppend(&subject, " within ", absl::StrFormat("%.3g", 100 * stats.max_overhead),
                    " % of its CPU time");
  add_unless_zero(subject, "threads beyond the memory limit", stats.threads_unlisted);
  add_unless_zero(subject, "registrations refused", stats.threads_refused);
  add_unless_zero(subject, "exports failed", stats.exports_failed);
  add_unless_zero(subject, "profiles never delivered", stats.exports_dropped);
  add_unless_zero(subject, "amount in no profile",
                  static_cast<std::uint64_t>(std::max<std::int64_t>(stats.amount_dropped, 0)));
  for (const OutputStats& output : stats.outputs) {
    if (output.name.empty()) continue;
    add_unless_zero(subject, absl::StrCat("exports failed at ", output.name),
                    output.exports_failed);
    add_unless_zero(subject, absl::StrCat("profiles never delivered by ", output.name),
                    output.exports_dropped);
  }
  add_unless_zero(subject, "periods extended", stats.periods_extended);
  if (!stats.program_end.empty())
    absl::StrAppend(&subject, "; the program has ended: ", stats.program_end);
  add_unless_zero(quality, "samples beyond the memory limit", stats.stacks_overflowed);
  add_unless_zero(quality, "times beyond the memory limit", stats.moments_dropped);
  add_unless_zero(quality, "slow spans beyond a limit", stats.spans_overflowed);
  add_unless_zero(quality, "stacks finished by the collector", stats.stacks_deferred);
  add_unless_zero(quality, "stacks of waiting threads, found without a signal", stats.waits_walked);
  add_unless_zero(quality, "waits interrupted", stats.waits_interrupted + stats.waits_hidden);
  add_unless_zero(quality, "signals of others", stats.signals_foreign);
  add_unless_zero(quality, "late signals", stats.signals_stale);
  add_unless_zero(quality, "sums cut that were less than 0", stats.sums_cut);
  add_unless_zero(quality, "handler replaced", stats.handler_replaced);
  add_unless_zero(cost, "waits abandoned", stats.waits_abandoned);
  add_unless_zero(cost, "calls and tasks that memory ran out in", stats.out_of_memory);
  add_unless_zero(cost, "poll rounds put off", stats.polls_put_off);
  std::vector<std::string> comments{std::move(subject), std::move(quality), std::move(cost)};
  if (stats.unregistered.share > 0)
    comments.push_back(TextOf(stats.unregistered, "in this period"));
  if (!profile.machine.empty()) comments.push_back(MachineComment(profile.machine));
  return comments;
}

}  // namespace strobe::internal

namespace strobe {

std::string MachineComment(const LabelSet& machine) {
  std::string comment;
  for (const Label& label : machine.labels()) {
    const auto* const number = std::get_if<std::int64_t>(&label.value);
    std::string value =
        number != nullptr ? absl::StrCat(*number) : std::get<std::string>(label.value);
    std::ranges::replace(value, ';', ',');  // which would end it
    absl::StrAppend(&comment,
                    std::string(comment.empty() ? internal::kMachine : internal::kBetweenTags),
                    label.key, "=", value);
  }
  return comment;
}

LabelSet MachineIn(std::string_view comment) {
  if (!comment.starts_with(internal::kMachine)) return {};
  comment.remove_prefix(internal::kMachine.size());
  std::vector<Label> labels;
  while (!comment.empty()) {
    const std::string_view tag = comment.substr(0, comment.find(internal::kBetweenTags));
    comment.remove_prefix(std::min(comment.size(), tag.size() + internal::kBetweenTags.size()));
    const std::size_t equals = tag.find('=');
    const std::string_view key = tag.substr(0, equals);
    if (equals == std::string_view::npos ||
        std::ranges::find(kMachineTags, key, &MachineTag::key) == kMachineTags.end())
      continue;
    const std::string value(tag.substr(equals + 1));
    Label& label = labels.emplace_back(Label{.key = std::string(key), .value = value});
    std::int64_t number = 0;
    // A number that reads back as the same text.
    if (absl::SimpleAtoi(value, &number) && absl::StrCat(number) == value) label.value = number;
  }
  return LabelSet(std::move(labels));
}

}  // namespace strobe
