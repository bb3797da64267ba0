// Statistics of the profiler itself.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/stack.h"
#include "strobe/core/unregistered_threads.h"

namespace strobe {

// Why a due sample did not become a record. No other stack gets its weight. If a clock tells the
// thread's amounts, the period's samples of the thread divide it, as part of the residual. Else it
// goes into the pseudo-frame [lost], in the period that it belongs to. If memory runs out,
// Stats::amount_dropped counts it.
enum class DropReason : std::uint8_t {
  kRingFull = 0,  // the collector had not yet made room
  kNoRegisters,   // the signal came without the thread's registers
  kNoTable,       // the ring is full of stacks that wait for unwind tables
  // The bytes in the ring were not a record: the program or another process wrote into its memory.
  kUnreadable,
  kNoMemory,  // memory ran out when the thread's account was closed
};
inline constexpr std::size_t kDropReasonCount = 5;

constexpr std::string_view DropReasonName(DropReason reason) {
  switch (reason) {
    case DropReason::kRingFull: return "ring full";
    case DropReason::kNoRegisters: return "no registers";
    case DropReason::kNoTable: return "no table yet";
    case DropReason::kUnreadable: return "unreadable";
    case DropReason::kNoMemory: return "no memory";
  }
  return "unknown";
}

// Why a profile was never delivered to an output.
enum class ExportDrop : std::uint8_t {
  kRefused = 0,     // the output refused it for good (see RefusesProfile)
  kTooManyWaiting,  // too many waited for an output that failed while another delivered
  kSessionEnded,    // it still waited when its session ended
  kSpoolFull,       // the exporter's spool on disk had no room for it
  kTooOld,          // it was older than the spool keeps profiles
  kUnreadable,      // its file in the spool was damaged or removed
};
inline constexpr std::size_t kExportDropCount = 6;

constexpr std::string_view ExportDropName(ExportDrop reason) {
  switch (reason) {
    case ExportDrop::kRefused: return "refused";
    case ExportDrop::kTooManyWaiting: return "too many waiting";
    case ExportDrop::kSessionEnded: return "session ended";
    case ExportDrop::kSpoolFull: return "spool full";
    case ExportDrop::kTooOld: return "too old";
    case ExportDrop::kUnreadable: return "unreadable";
  }
  return "unknown";
}

// The profiles that an exporter keeps on disk until it can deliver them.
struct SpoolStats {
  std::uint64_t found = 0;          // left there by an earlier process or session
  std::uint64_t left = 0;           // left there by sessions that have ended
  std::uint64_t waiting = 0;        // now
  std::uint64_t waiting_bytes = 0;  // now

  friend bool operator==(const SpoolStats&, const SpoolStats&) = default;
};

// The exports of one output of a profiler: see OutputList. The account adds up:
//   profiles made + spool.found =
//       delivered + exports_dropped + spool.waiting + spool.left + those that wait in memory
// Without a spool, at most kMaxWaitingProfiles + 2 wait in memory, and none after the session.
struct OutputStats {
  std::string name;           // "output 2 (.pb.gz)"; empty if the profiler has one output
  std::uint64_t exports = 0;  // profiles that the exporter took: delivered, or kept in its spool
  std::uint64_t exports_failed = 0;
  std::uint64_t exports_dropped = 0;  // never delivered: see Stats::exports_dropped
  std::array<std::uint64_t, kExportDropCount> drops{};  // the same, by ExportDrop
  std::int64_t amount_dropped = 0;                      // in the dropped exports
  std::uint64_t delivered = 0;                          // profiles that arrived
  SpoolStats spool{};
  std::string last_export_error;  // empty after a success
  std::string last_export_path;   // the destination of the last success
};

// Counters since the profiler was constructed; in a Profile, those of its period.
struct Stats {
  // Threads.
  std::uint64_t threads_registered = 0;        // now; in a Profile, at its end
  std::uint64_t threads_ended = 0;             // registrations that have ended
  std::uint64_t threads_refused = 0;           // registrations that ended in an error
  std::uint64_t threads_on_timers = 0;         // now: threads with a timer on their CPU clock
  std::uint64_t threads_on_random_timers = 0;  // now: threads with a timer that expires at random
  std::uint64_t threads_at_instants = 0;       // now: threads sampled at random instants
  std::uint64_t threads_blocking = 0;  // now: threads not sampled because they block the signal

  // Capture.
  // Now: the signal that interrupts threads. 0 before a session, and without signals.
  int signal_number = 0;
  std::uint64_t samples = 0;  // records drained, and stacks of waiting threads walked from outside
  std::array<std::uint64_t, kDropReasonCount> drops{};     // by DropReason
  std::array<std::uint64_t, kStackEndCount> stack_ends{};  // by StackEnd
  std::uint64_t signals_foreign = 0;   // not the profiler's: passed to the previous handler
  std::uint64_t signals_stale = 0;     // for a registration or session that has ended
  std::uint64_t handler_replaced = 0;  // times the profiler's handler was found replaced
  // Estimated: every 16th handler call of a thread is timed, and counted 16 times.
  std::int64_t handler_time_ns = 0;

  // The requested and the measured rate of the first provider that has a rate, in samples per
  // second of its own clock; 0 if nothing was measured.
  double requested_rate_hz = 0;
  double measured_rate_hz = 0;
  double max_overhead = 0;  // the option, a share of the process's CPU time; 0 if unknown

  std::uint64_t measured_samples = 0;  // samples of that provider
  std::int64_t measured_ns = 0;        // its clock's time over all threads that were sampled

  // Collector and aggregator.
  std::uint64_t drains = 0;
  std::int64_t collector_cpu_ns = 0;  // CPU time of the collector thread
  std::int64_t process_cpu_ns = 0;    // CPU time of the process while it was sampled
  // Samples that the aggregator's memory limit put into [overflow].
  std::uint64_t stacks_overflowed = 0;
  // Samples with the label "[labels over limit]": LabelTable had no room for the labels that their
  // threads had set, or the aggregator's memory limit had none for one more context.
  std::uint64_t labels_overflowed = 0;
  // Samples whose times were not kept, because a period's moments had reached their limit (see
  // MomentTable). Their amounts are in the profile.
  std::uint64_t moments_dropped = 0;
  // Of spans with a threshold: samples whose span the aggregator's memory limit had no room for,
  // and slow spans beyond SlowSpans::kMaxSpans in a period. They count as not slow.
  std::uint64_t spans_overflowed = 0;
  // Threads whose begin, end and CPU time are not in the profile of a period, because the period's
  // lives had reached their limit (see LifeTable). Their samples are in it. A thread counts once in
  // each such period.
  std::uint64_t threads_unlisted = 0;
  // Windows of what was kept (see KeepOptions) that were written; that were not, because memory ran
  // out, an output had no room, failed or takes none; and moments of triggers that have no window
  // of their own, because one was less than a minute before. The periods have the samples anyway.
  std::uint64_t dumps = 0;
  std::uint64_t dumps_failed = 0;
  std::uint64_t dumps_skipped = 0;
  // Samples whose stack the collector finished, because the handler had no table for it yet.
  std::uint64_t stacks_deferred = 0;
  std::uint64_t unwind_tables = 0;  // now: chunks of text, 256 KiB each, whose tables are built
  std::uint64_t module_refreshes = 0;
  // Now: a module whose frame information could not be read; empty if there is none.
  std::string unread_module;
  std::uint64_t waits_abandoned = 0;  // the profiler's bounded waits that timed out
  std::uint64_t instants = 0;         // random instants at which threads on a CPU were sampled
  // Stacks of waiting threads that were found from outside, without a signal.
  std::uint64_t waits_walked = 0;
  // Interruptions of waiting threads, because such a walk lacked the frame pointer or, from a
  // signal's alternate stack, the thread's own stack.
  std::uint64_t waits_interrupted = 0;
  // Interruptions of threads that may have waited, because the system hides where or the stack.
  std::uint64_t waits_hidden = 0;
  // Delayed poll rounds over all threads. The delay keeps polls within 1 % of a core.
  std::uint64_t polls_put_off = 0;

  // Only in a Profile: sums of one thread's values that were less than 0 and are shown as 0. The
  // built-in providers never cause that.
  std::uint64_t sums_cut = 0;

  // Export: the sums over all outputs. The error and the path are those of the first output that
  // has one. An error begins with the output's name.
  std::uint64_t exports = 0;
  std::uint64_t exports_failed = 0;
  // Profiles that were never delivered: see ExportDrop. A profile that could not be made at the end
  // of its session, because memory ran out, counts once, and for no output.
  std::uint64_t exports_dropped = 0;
  // The amount in these profiles and in drops because memory ran out, in the unit that the first
  // provider shows by default.
  std::int64_t amount_dropped = 0;
  // Periods that were extended because the previous one had not been exported yet.
  std::uint64_t periods_extended = 0;
  std::string last_export_error;     // empty after a success
  std::string last_export_path;      // the destination of the last success
  std::vector<OutputStats> outputs;  // of each output, in the order of the list
  // A module with more functions than the symbolizer keeps; empty if there was none.
  std::string partly_named_module;

  // In the last period; in a Profile, in its period. Nothing in a recording on demand.
  UnregisteredThreads unregistered;

  // Only in the profiles of a worker: how its program has ended, such as "killed by signal 9";
  // empty while it runs.
  std::string program_end;

  // Memory of the profiler, in bytes, now.
  std::uint64_t memory_bytes = 0;
  std::uint64_t out_of_memory = 0;  // calls and tasks that were abandoned because memory ran out
};

}  // namespace strobe
