#include "strobe/runtime/control/diagnosis.h"

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "strobe/core/stack.h"
#include "strobe/runtime/threads/signal_mask.h"

namespace strobe::internal {
namespace {

// Up to this percentage of cut stacks needs no advice: a signal may come where a compiler's frame
// information is wrong. Fewer than kLeastStacks stacks prove nothing.
constexpr std::uint64_t kUsualCutPercent = 5;
constexpr std::uint64_t kLeastStacks = 20;

void AddState(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  if (!facts.available.ok())
    lines.push_back(absl::StrCat("Profiling cannot work here: ", facts.available.message(), "."));
  if (!*facts.options.enabled) {
    lines.push_back(
        "The profiler is switched off: by STROBE_ENABLED=0, or by the option `enabled`.");
  } else if (!facts.last_start.ok()) {
    lines.push_back(absl::StrCat("The last Start failed: ", facts.last_start.message(), "."));
  } else if (!facts.was_started) {
    lines.push_back("The profiler was never started: call Start(), or construct a ScopedProfiler.");
  } else if (!facts.is_running) {
    lines.push_back(absl::StrCat("The profiler is stopped. It has taken ", facts.stats.samples,
                                 " samples, and exported ", facts.stats.exports, " profiles."));
  }
  if (*facts.options.sampling.cpu_frequency_hz <= 0 &&
      *facts.options.sampling.wall_frequency_hz <= 0) {
    lines.push_back(
        "Both built-in providers are off: sampling.cpu_frequency_hz and sampling.wall_frequency_hz "
        "are 0.");
  }
}

void AddUnregistered(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const bool is_worse_now = facts.unregistered.share >= facts.stats.unregistered.share;
  const std::string text = is_worse_now ? TextOf(facts.unregistered, "so far")
                                        : TextOf(facts.stats.unregistered, "in the last period");
  if (!text.empty()) lines.push_back(absl::StrCat(text, ": call RegisterThread in each."));
}

void AddThreads(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const Stats& stats = facts.stats;
  if (stats.threads_registered == 0 && stats.threads_ended != 0) {
    lines.push_back(absl::StrCat("No thread is registered now: ", stats.threads_ended,
                                 " threads were registered and have ended."));
  } else if (stats.threads_registered == 0) {
    lines.push_back(
        "No thread is registered: only threads that call RegisterThread, and keep what it returns, "
        "are sampled.");
  }
  if (stats.threads_refused != 0) {
    lines.push_back(absl::StrCat(stats.threads_refused,
                                 " registrations were refused: see Registration::status()."));
  }
  if (*facts.options.sampling.trigger == SampleTrigger::kTimers && stats.threads_at_instants != 0) {
    lines.push_back(absl::StrCat("The system refused the CPU timers of ", stats.threads_at_instants,
                                 " threads (RLIMIT_SIGPENDING is a usual reason): they are sampled "
                                 "at random instants instead."));
  }
  if (*facts.options.sampling.trigger == SampleTrigger::kPerf && stats.threads_at_instants != 0) {
    lines.push_back(absl::StrCat(
        "The system refused the perf events of ", stats.threads_at_instants,
        " threads: they are sampled at random instants instead. Linux allows them with "
        "kernel.perf_event_paranoid at most 1 or CAP_PERFMON, without a filter of system calls, "
        "while the signal is SIGURG and files are left (an eighth of RLIMIT_NOFILE)."));
  }
  if (stats.waits_hidden != 0) {
    lines.push_back(absl::StrCat(
        stats.waits_hidden,
        " interruptions may have ended a wait early, with EINTR where SA_RESTART has no effect: "
        "the system does not tell where threads wait (/proc/self/task/<thread>/syscall), or does "
        "not "
        "let their stacks be read (process_vm_readv)."));
  }
}

void AddStacks(const Stats& stats, std::vector<std::string>& lines) {
  const auto ends = [&stats](StackEnd end) {
    return stats.stack_ends[static_cast<std::size_t>(end)];
  };
  const std::uint64_t all =
      std::accumulate(stats.stack_ends.begin(), stats.stack_ends.end(), std::uint64_t{0});
  const std::uint64_t cut = all - ends(StackEnd::kComplete) - ends(StackEnd::kCoroutine);
  if (all < kLeastStacks || cut * 100 <= all * kUsualCutPercent) return;
  const bool is_depth = ends(StackEnd::kTruncated) > cut / 2;
  lines.push_back(absl::StrCat(
      cut * 100 / all, " % of ", all, " stacks are cut: ", ends(StackEnd::kBroken), " are broken, ",
      ends(StackEnd::kNoUnwindInfo), " come to code without unwind information, ",
      ends(StackEnd::kTruncated), " are too deep. ",
      is_depth ? "A larger sampling.max_frames helps."
               : "Code needs frame information (.eh_frame) or frame pointers: assembler and what "
                 "is built with -fno-asynchronous-unwind-tables may have neither."));
}

void AddInterruptions(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const Stats& stats = facts.stats;
  if (facts.handler == HandlerState::kReplaced) {
    lines.push_back(absl::StrCat(
        "The program has replaced the handler of signal ", facts.signal,
        ", and the new handler does not call Strobe's: no sample arrives. Choose another "
        "sampling.signal_number."));
  }
  if (facts.threads_given_up != 0) {
    lines.push_back(absl::StrCat(facts.threads_given_up,
                                 " threads are not sampled any more: each sample stopped them for "
                                 "too long. Usual reasons are a debugger and a lack of processor "
                                 "time. Their CPU time is in [residual]."));
  }
  if (stats.threads_blocking != 0)
    lines.push_back(
        absl::StrCat("Note that ", BlockingThreads(stats.threads_blocking, facts.signal)));
}

void AddDrops(const Stats& stats, std::vector<std::string>& lines) {
  // A missing table needs no advice: the collector builds it.
  const auto drops = [&stats](DropReason reason) {
    return stats.drops[static_cast<std::size_t>(reason)];
  };
  if (drops(DropReason::kRingFull) != 0) {
    lines.push_back(absl::StrCat(
        drops(DropReason::kRingFull),
        " samples found their ring full; their time is divided among the "
        "thread's other samples, and events are [lost]. A larger threads.ring_bytes helps."));
  }
  if (drops(DropReason::kNoRegisters) != 0) {
    lines.push_back(absl::StrCat(
        drops(DropReason::kNoRegisters),
        " signals came without the thread's registers; their time is divided among the thread's "
        "other samples."));
  }
  if (drops(DropReason::kUnreadable) != 0) {
    lines.push_back(absl::StrCat(drops(DropReason::kUnreadable),
                                 " records could not be read: the program or another process "
                                 "writes into the memory of the rings. Their weight is in "
                                 "[lost]."));
  }
}

void AddLimits(const Stats& stats, std::vector<std::string>& lines) {
  if (!stats.unread_module.empty()) {
    lines.push_back(absl::StrCat("The frame information of ", stats.unread_module,
                                 " could not be read: stacks through it need frame pointers."));
  }
  if (!stats.partly_named_module.empty()) {
    lines.push_back(absl::StrCat(
        stats.partly_named_module,
        " has more functions, or longer names, than are kept: some are shown by their addresses."));
  }
  const auto add_unless_zero = [&](std::uint64_t count, std::string_view what) {
    if (count != 0) lines.push_back(absl::StrCat(count, " ", std::string(what)));
  };
  add_unless_zero(
      stats.stacks_overflowed,
      "samples went into [overflow]: collector.memory_bytes is too small for this program.");
  add_unless_zero(stats.labels_overflowed,
                  "samples have the label [labels over limit]: the program sets too many different "
                  "labels.");
  add_unless_zero(
      stats.moments_dropped,
      "samples have no time: collector.memory_bytes has no room for so many in a period.");
  add_unless_zero(stats.spans_overflowed,
                  "samples or slow spans are not under slow=true: there are too many spans in a "
                  "period for collector.memory_bytes.");
  add_unless_zero(stats.threads_unlisted,
                  "threads have neither times nor CPU time in their profiles: "
                  "collector.memory_bytes has no room for so many in a period.");
}

void AddSilence(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const Stats& stats = facts.stats;
  if (facts.is_running && stats.threads_registered > stats.threads_blocking && stats.samples == 0 &&
      facts.handler == HandlerState::kOurs) {
    lines.push_back(
        "Threads are registered, but there is no sample yet: a thread that does not run uses no "
        "CPU time, so CPU sampling takes none of it.");
  }
}

void AddExports(const Stats& stats, std::vector<std::string>& lines) {
  for (const OutputStats& output : stats.outputs) {
    const std::string to = output.name.empty() ? "" : absl::StrCat(" to ", output.name);
    if (!output.last_export_error.empty()) {
      lines.push_back(absl::StrCat(
          "The last export", to, " failed: ", output.last_export_error,
          ". A profile that was not refused for good is tried again when the period ends."));
    }
    if (output.exports_dropped != 0) {
      lines.push_back(absl::StrCat(
          output.exports_dropped, " profiles were never delivered", to, ", with an amount of ",
          output.amount_dropped,
          ": the exporter refused them for good, or the session ended. If they were too large, a "
          "shorter exporter.period_s helps."));
    }
  }
}

void AddMemory(const Stats& stats, std::vector<std::string>& lines) {
  if (stats.out_of_memory == 0) return;
  lines.push_back(absl::StrCat("Memory ran out ", stats.out_of_memory,
                               " times in calls and tasks of the profiler. Most are tried again; "
                               "what had to be dropped has an amount of ",
                               stats.amount_dropped, "."));
}

}  // namespace

std::string Diagnose(const DiagnosisFacts& facts) {
  std::vector<std::string> lines;
  AddState(facts, lines);
  AddThreads(facts, lines);
  AddUnregistered(facts, lines);
  AddStacks(facts.stats, lines);
  AddInterruptions(facts, lines);
  AddDrops(facts.stats, lines);
  AddLimits(facts.stats, lines);
  AddSilence(facts, lines);
  AddExports(facts.stats, lines);
  AddMemory(facts.stats, lines);
  if (lines.empty()) {
    const std::string ended =
        facts.stats.threads_ended == 0
            ? ""
            : absl::StrCat(" and ", facts.stats.threads_ended, " that have ended");
    lines.push_back(
        absl::StrCat("All is well: ", facts.stats.threads_registered, " threads", ended, ", ",
                     facts.stats.samples, " samples, ", facts.stats.exports, " exports",
                     facts.signal > 0 ? absl::StrCat(", by signal ", facts.signal) : "", "."));
  }
  if (!facts.given_options.empty()) {
    lines.push_back(absl::StrCat(
        "Options that are not the defaults: ", absl::StrJoin(facts.given_options, "; "), "."));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace strobe::internal
