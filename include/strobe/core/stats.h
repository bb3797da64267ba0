// The profiler's own account.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/stack.h"

namespace strobe {

// Why a sample that was due did not become a record of its own. Its weight is never lost: it rides
// on the thread's next record, or ends in the pseudo-frame [lost]; for want of memory, it is
// counted in Stats::amount_dropped.
enum class DropReason : std::uint8_t {
  kRingFull = 0,  // the collector had not yet made room
  kNoRegisters,   // the signal came without the thread's registers
  // A table was not built yet, and the stack does not fit into a record whole, or its bounds are
  // not known, or the ring is full of stacks that wait for tables. A record without weight has as
  // much of it as fits, so that the collector can build what the next sample needs.
  kNoTable,
  // The ring held no record: the program or another process wrote into its memory.
  kUnreadable,
  kNoMemory,  // memory ran out when its thread's account was closed
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

// What one output of a profiler has delivered: see OutputList.
struct OutputStats {
  std::string name;  // "output 2 (.pb.gz)"; empty where the profiler has one output
  std::uint64_t exports = 0;
  std::uint64_t exports_failed = 0;
  std::uint64_t exports_dropped = 0;  // never delivered: see Stats::exports_dropped
  std::int64_t amount_dropped = 0;    // in these
  std::string last_export_error;      // empty after a success
  std::string last_export_path;       // what the exporter said of its last success
};

// Counters since the profiler was constructed; in a Profile, those of its period.
struct Stats {
  // Threads.
  std::uint64_t threads_registered = 0;   // now; in a Profile, at its end
  std::uint64_t threads_ended = 0;        // registrations that have ended
  std::uint64_t threads_refused = 0;      // registrations that ended in an error
  std::uint64_t threads_on_fallback = 0;  // now: threads whose timer the kernel refused
  std::uint64_t threads_blocking = 0;  // now: threads that block the signal, and so are not sampled

  // Capture.
  int signal_number =
      0;  // now: the signal that interrupts threads; 0 before a session, and without signals
  std::uint64_t samples = 0;                               // records drained
  std::array<std::uint64_t, kDropReasonCount> drops{};     // by DropReason
  std::array<std::uint64_t, kStackEndCount> stack_ends{};  // by StackEnd
  std::uint64_t signals_foreign = 0;   // not ours: handed to the previous handler
  std::uint64_t signals_stale = 0;     // ours, but of a registration or session that has ended
  std::uint64_t handler_replaced = 0;  // times our handler was found replaced
  std::int64_t handler_time_ns =
      0;  // estimated: every 16th handler call of a thread is timed, and counted 16 times

  // Rates of the first provider that has one, in samples per second of its own clock; 0 where
  // nothing was measured.
  double requested_rate_hz = 0;
  double measured_rate_hz = 0;

  std::uint64_t measured_samples = 0;  // samples of that provider
  std::int64_t measured_ns = 0;        // its clock's time over all threads that were sampled

  // Collector and aggregator.
  std::uint64_t drains = 0;
  std::int64_t collector_cpu_ns = 0;  // CPU time of the collector thread
  std::uint64_t stacks_overflowed =
      0;  // samples that the aggregator's memory limit put into [overflow]
  std::uint64_t stacks_deferred =
      0;  // samples whose stack the collector finished, because the handler had no table for it yet
  std::uint64_t unwind_tables = 0;  // now: pieces of text, of 256 KiB, whose tables are built
  std::uint64_t module_refreshes = 0;
  std::string
      // now: a module whose frame information could not be read; empty where there is none.
      unread_module;
  std::uint64_t waits_abandoned = 0;  // bounded waits of ours that ran out
  std::uint64_t polls_put_off =
      0;  // poll rounds over all threads that came later, lest they take more than 1 % of a core

  // In a Profile alone: sums of one thread's values that were less than 0, and are 0 there. No
  // provider of ours brings that about.
  std::uint64_t sums_cut = 0;

  // Export: the sums over all outputs. An error and a path are those of the first output that has
  // one; an error begins with the output's name.
  std::uint64_t exports = 0;
  std::uint64_t exports_failed = 0;
  std::uint64_t exports_dropped =
      // Profiles never delivered: refused for good (see RefusesProfile), waiting when their session
      // ended, or one too many waiting for an output that fails while another delivers. One that
      // there was no memory to make at the end of its session counts once, and for no output.
      0;
  std::int64_t amount_dropped =
      // In these and in drops for want of memory, in the unit that the first provider shows by
      // default.
      0;
  std::uint64_t periods_extended =
      0;  // periods that went on because the one before had not been exported yet
  std::string last_export_error;     // empty after a success
  std::string last_export_path;      // what the exporter said of its last success
  std::vector<OutputStats> outputs;  // of each output, in the order of the list
  std::string
      // A module with more functions than the symbolizer keeps; empty where there was none.
      partly_named_module;

  // Memory of the profiler, in bytes, now.
  std::uint64_t memory_bytes = 0;
  std::uint64_t out_of_memory = 0;  // calls and tasks that were given up because memory ran out
};

}  // namespace strobe
