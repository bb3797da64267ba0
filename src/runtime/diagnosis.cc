#include "strobe/runtime/diagnosis.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace strobe::internal {
namespace {

void AddState(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  if (!facts.available.ok()) lines.push_back(absl::StrCat("Profiling cannot work here: ", facts.available.message(), "."));
  if (!*facts.options.enabled) {
    lines.push_back("The profiler is switched off: by STROBE_ENABLED=0, or by the option `enabled`.");
  } else if (!facts.last_start.ok()) {
    lines.push_back(absl::StrCat("The last Start failed: ", facts.last_start.message(), "."));
  } else if (!facts.was_started) {
    lines.push_back("The profiler was never started: call Start(), or construct a ScopedProfiler.");
  } else if (!facts.is_running) {
    lines.push_back("The profiler is stopped.");
  }
  if (*facts.options.sampling.cpu_frequency_hz <= 0 && *facts.options.sampling.wall_frequency_hz <= 0) {
    lines.push_back("Both built-in providers are off: sampling.cpu_frequency_hz and sampling.wall_frequency_hz are 0.");
  }
}

void AddThreads(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const Stats& stats = facts.stats;
  if (stats.threads_registered == 0) {
    lines.push_back("No thread is registered: only threads that call RegisterThread, and keep what it returns, are sampled.");
  }
  if (stats.threads_refused != 0) {
    lines.push_back(absl::StrCat(stats.threads_refused, " registrations were refused: see Registration::status()."));
  }
  if (stats.threads_on_fallback != 0) {
    lines.push_back(absl::StrCat("The system refused the CPU timer of ", stats.threads_on_fallback,
                                 " threads (RLIMIT_SIGPENDING is a usual reason): the collector looks at their CPU clocks instead."));
  } else if (!*facts.options.sampling.use_timers) {
    lines.push_back("CPU timers are off by option: the collector looks at the threads' CPU clocks instead.");
  }
}

void AddCapture(const DiagnosisFacts& facts, std::vector<std::string>& lines) {
  const Stats& stats = facts.stats;
  if (facts.handler == HandlerState::kReplaced) {
    lines.push_back(absl::StrCat("The program has replaced the handler of signal ", facts.signal,
                                 ": no sample arrives unless the new handler calls ours. Choose another sampling.signal_number."));
  }
  if (facts.threads_given_up != 0) {
    lines.push_back(absl::StrCat(facts.threads_given_up,
                                 " threads are not sampled any more: each time they were stopped for it, they stayed so for too long. A "
                                 "debugger, or far too little processor time, is a usual reason. Their CPU time is in [residual]."));
  }
  // That a table was missing ends by itself.
  const auto drops = [&stats](DropReason reason) { return stats.drops[static_cast<std::size_t>(reason)]; };
  if (drops(DropReason::kRingFull) != 0) {
    lines.push_back(absl::StrCat(drops(DropReason::kRingFull),
                                 " samples found their ring full; their weight rides on later ones. A larger threads.ring_bytes helps."));
  }
  if (drops(DropReason::kNoRegisters) != 0) {
    lines.push_back(absl::StrCat(drops(DropReason::kNoRegisters),
                                 " signals came without the thread's registers; their weight rides on later samples."));
  }
  if (drops(DropReason::kUnreadable) != 0) {
    lines.push_back(absl::StrCat(drops(DropReason::kUnreadable),
                                 " records could not be read: somebody writes into the memory of the rings. Their weight is in [lost]."));
  }
  if (!stats.unread_module.empty()) {
    lines.push_back(absl::StrCat("The frame information of ", stats.unread_module,
                                 " could not be read: stacks through it go by frame pointers, if by anything."));
  }
  if (stats.stacks_folded != 0) {
    lines.push_back(
        absl::StrCat(stats.stacks_folded, " samples went into [folded]: collector.memory_bytes is too small for this program."));
  }
  if (facts.is_running && stats.threads_registered != 0 && stats.samples == 0 && facts.handler == HandlerState::kOurs) {
    lines.push_back(
        "Threads are registered, but no sample has come yet: a thread that does not run uses no CPU time, and is not sampled for it.");
  }
  if (!stats.last_export_error.empty()) {
    lines.push_back(absl::StrCat("The last export failed: ", stats.last_export_error, ". It is tried again when the period ends."));
  }
}

}  // namespace

std::string Diagnose(const DiagnosisFacts& facts) {
  std::vector<std::string> lines;
  AddState(facts, lines);
  AddThreads(facts, lines);
  AddCapture(facts, lines);
  if (lines.empty()) {
    lines.push_back(absl::StrCat("All is well: ", facts.stats.threads_registered, " threads, ", facts.stats.samples, " samples, ",
                                 facts.stats.exports, " exports."));
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace strobe::internal
