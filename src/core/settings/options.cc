#include "strobe/core/options.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/core/record.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/core/stack.h"

namespace strobe {

template <>
struct internal::OptionNames<SampleTrigger> {
  static constexpr std::array<std::string_view, 4> kNames{"auto", "timers", "random", "perf"};
};

template <>
struct internal::OptionNames<SymbolMode> {
  static constexpr std::array<std::string_view, 3> kNames{"none", "names", "full"};
};

template <>
struct internal::OptionNames<WorkerFallback> {
  static constexpr std::array<std::string_view, 2> kNames{"none", "in_process"};
};

namespace {

using internal::AnyOf;
using internal::Between;
using internal::FormatOption;
using internal::kSwitch;
using internal::Path;
using internal::SetFromText;

struct PowerOfTwoBetween {
  std::int64_t least;
  std::int64_t most;
  std::string_view text;
  [[nodiscard]] bool Accepts(std::int64_t value) const {
    return value >= least && value <= most &&
           std::has_single_bit(static_cast<std::uint64_t>(value));
  }
};

// The numbers are those of Linux on x86-64 and aarch64. Not accepted are the signals that a fault
// or abort raises (4 to 8, 11), those that cannot be caught (9, 19), and those that the C library
// reserves (32, 33).
struct UsableSignal {
  std::string_view text;
  [[nodiscard]] bool Accepts(std::int64_t value) const {
    return value >= 0 && value <= 64 && !(value >= 4 && value <= 9) && value != 11 && value != 19 &&
           value != 32 && value != 33;
  }
};

constexpr Between<double> kCpuFrequency{0, 10000, "a number from 0 to 10000"};
constexpr Between<double> kWallFrequency{0, 1000, "a number from 0 to 1000"};
constexpr AnyOf<SampleTrigger> kTrigger{"auto, timers, random or perf"};
constexpr Between<double> kOverhead{0.0001, 1, "a number from 0.0001 to 1"};
constexpr Between<std::int64_t> kFrames{1, kMaxFramesLimit, "an integer from 1 to 2048"};
constexpr UsableSignal kSignal{"an integer from 0 to 64 other than 4 to 9, 11, 19, 32 and 33"};
constexpr Between<std::int64_t> kThreads{1, 262144, "an integer from 1 to 262144"};
constexpr PowerOfTwoBetween kRing{4096, 16777216, "a power of two from 4096 to 16777216"};
constexpr Between<std::int64_t> kStack{0, 1073741824, "an integer from 0 to 1073741824"};
constexpr Between<std::int64_t> kDrainPeriod{1, 10000, "an integer from 1 to 10000"};
constexpr Between<std::int64_t> kMemory{1048576, 1099511627776,
                                        "an integer from 1048576 to 1099511627776"};
constexpr Between<std::int64_t> kKeepMemory{0, 1099511627776, "an integer from 0 to 1099511627776"};
constexpr Between<double> kKeepTime{0, 3600, "a number from 0 to 3600"};
constexpr Between<double> kCpuPercent{0, 1000000, "a number from 0 to 1000000"};
constexpr Path kDirectory{"a path of 1 to 4095 bytes"};
constexpr Between<double> kExportPeriod{0.01, 86400, "a number from 0.01 to 86400"};
constexpr Between<std::int64_t> kFiles{1, 1000000, "an integer from 1 to 1000000"};
constexpr Between<std::int64_t> kFileBytes{1, 1125899906842624,
                                           "an integer from 1 to 1125899906842624"};
constexpr Between<double> kStopTimeout{0, 3600, "a number from 0 to 3600"};

constexpr AnyOf<SymbolMode> kSymbolMode{"none, names or full"};
constexpr Between<double> kSymbolTime{0, 3600, "a number from 0 to 3600"};
constexpr Path kDirectories{"paths of 1 to 4095 bytes together"};

constexpr Path kWorkerPath{"a path of at most 4095 bytes", /*may_be_empty=*/true};
constexpr AnyOf<WorkerFallback> kWorkerFallback{"none or in_process"};

// The row of the option `kField` in the group `kGroup` of ProfilerOptions.
template <auto kGroup, auto kField, const auto& kAccepted>
constexpr OptionRow Row(std::string_view variable, std::string_view field,
                        std::string_view description) {
  return {
      .variable = variable,
      .field = field,
      .accepted = kAccepted.text,
      .description = description,
      .get =
          [](const ProfilerOptions& options) { return FormatOption(*(options.*kGroup.*kField)); },
      .set =
          [](ProfilerOptions& options, std::string_view text, OptionSource source) {
            return SetFromText(options.*kGroup.*kField, text, kAccepted, source);
          },
      .valid =
          [](const ProfilerOptions& options) {
            return kAccepted.Accepts(*(options.*kGroup.*kField));
          },
      .is_set = [](const ProfilerOptions& options) { return (options.*kGroup.*kField).is_set(); }};
}

// The kill switch differs from every other option: 0 also beats code.
bool SetEnabled(ProfilerOptions& options, std::string_view text, OptionSource source) {
  bool value = false;
  if (!internal::ParseOption(text, value)) return false;
  if (source == OptionSource::kCode) {
    options.enabled = value;
  } else if (!value || !options.enabled.is_set()) {
    options.enabled = Option<bool>::Default{value};
  }
  return true;
}

constexpr OptionRow EnabledRow() {
  return {.variable = "STROBE_ENABLED",
          .field = "enabled",
          .accepted = kSwitch.text,
          .description = "The kill switch: 0 beats even what code sets.",
          .get = [](const ProfilerOptions& options) { return FormatOption(*options.enabled); },
          .set = SetEnabled,
          .valid = [](const ProfilerOptions& /*options*/) { return true; },
          .is_set = [](const ProfilerOptions& options) { return options.enabled.is_set(); }};
}

// Linux' names of signals that may come from outside.
constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kSignalNames{
    {{"HUP", "1"},
     {"USR1", "10"},
     {"USR2", "12"},
     {"ALRM", "14"},
     {"URG", "23"},
     {"VTALRM", "26"},
     {"PROF", "27"},
     {"WINCH", "28"},
     {"IO", "29"},
     {"PWR", "30"}}};
constexpr UsableSignal kOutsideSignal{
    "an integer as for STROBE_SIGNAL_NUMBER, or a name such as USR2"};

// A row whose option also takes the name of a signal.
template <auto kGroup, auto kField, const auto& kAccepted>
constexpr OptionRow SignalRow(std::string_view variable, std::string_view field,
                              std::string_view description) {
  OptionRow row = Row<kGroup, kField, kAccepted>(variable, field, description);
  row.set = [](ProfilerOptions& options, std::string_view text, OptionSource source) {
    std::string_view name = text;
    if (name.starts_with("SIG")) name.remove_prefix(3);
    const auto* const known = std::ranges::find(
        kSignalNames, name, &std::pair<std::string_view, std::string_view>::first);
    return SetFromText(options.*kGroup.*kField, known == kSignalNames.end() ? text : known->second,
                       kAccepted, source);
  };
  return row;
}

constexpr std::array kTable = {
    EnabledRow(),
    Row<&ProfilerOptions::sampling, &SamplingOptions::cpu_frequency_hz, kCpuFrequency>(
        "STROBE_CPU_FREQUENCY_HZ", "sampling.cpu_frequency_hz",
        "Samples per second of a thread's CPU time; 0 turns CPU sampling off."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::wall_frequency_hz, kWallFrequency>(
        "STROBE_WALL_FREQUENCY_HZ", "sampling.wall_frequency_hz",
        "Polls per second of every registered thread, running or waiting, fewer where they would "
        "take more than 1 % of a core; 0 turns wall sampling off."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::max_frames, kFrames>(
        "STROBE_MAX_FRAMES", "sampling.max_frames",
        "Frames per stack; deeper stacks end in [truncated]."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::signal_number, kSignal>(
        "STROBE_SIGNAL_NUMBER", "sampling.signal_number",
        "The signal that interrupts threads; 0 takes the first that the program does not use."),
    SignalRow<&ProfilerOptions::sampling, &SamplingOptions::toggle_signal, kOutsideSignal>(
        "STROBE_TOGGLE_SIGNAL", "sampling.toggle_signal",
        "A signal from outside that begins a session or ends the running one; 0 for none "
        "(Linux)."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::unblock_signal, kSwitch>(
        "STROBE_UNBLOCK_SIGNAL", "sampling.unblock_signal",
        "Whether threads that block the signal let it through while they are registered; else they "
        "are not sampled."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::trigger, kTrigger>(
        "STROBE_TRIGGER", "sampling.trigger",
        "What triggers samples of CPU time: timers on threads' CPU clocks, random instants, perf "
        "events at random times, or for each thread the cheapest that its work cannot be in step "
        "with."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::max_overhead, kOverhead>(
        "STROBE_MAX_OVERHEAD", "sampling.max_overhead",
        "The share of the process's CPU time that samples at random instants may cost: their rate "
        "falls to keep to it, down to 1 Hz."),
    Row<&ProfilerOptions::sampling, &SamplingOptions::timestamps, kSwitch>(
        "STROBE_TIMESTAMPS", "sampling.timestamps",
        "Whether profiles keep each sample's time, in at most a quarter of collector.memory_bytes: "
        "for timelines and heat maps."),
    Row<&ProfilerOptions::threads, &ThreadOptions::max_threads, kThreads>(
        "STROBE_MAX_THREADS", "threads.max_threads", "Threads that can be registered at a time."),
    Row<&ProfilerOptions::threads, &ThreadOptions::ring_bytes, kRing>(
        "STROBE_RING_BYTES", "threads.ring_bytes",
        "Ring of each thread, committed page by page as it is used; 262144 where programs bring "
        "events, as allocations."),
    Row<&ProfilerOptions::threads, &ThreadOptions::least_stack_bytes, kStack>(
        "STROBE_LEAST_STACK_BYTES", "threads.least_stack_bytes",
        "Threads with smaller stacks get an alternate one for signals while they are registered; 0 "
        "gives none."),
    Row<&ProfilerOptions::threads, &ThreadOptions::rings_in_cores, kSwitch>(
        "STROBE_RINGS_IN_CORES", "threads.rings_in_cores",
        "Whether core dumps have the rings, with the last samples of each thread: some MB "
        "(Linux)."),
    Row<&ProfilerOptions::threads, &ThreadOptions::follow_forks, kSwitch>(
        "STROBE_FOLLOW_FORKS", "threads.follow_forks",
        "Whether a fork's child goes on: its thread is registered if the parent's is, and if a "
        "session runs, the child begins one after 10 ms (Linux)."),
    Row<&ProfilerOptions::collector, &CollectorOptions::drain_period_ms, kDrainPeriod>(
        "STROBE_DRAIN_PERIOD_MS", "collector.drain_period_ms",
        "Time between two drains of the rings; less while they run full, up to a second while they "
        "stay nearly empty."),
    Row<&ProfilerOptions::collector, &CollectorOptions::memory_bytes, kMemory>(
        "STROBE_MEMORY_BYTES", "collector.memory_bytes",
        "Memory of one period's stacks; what does not fit goes into [overflow]."),
    Row<&ProfilerOptions::collector, &CollectorOptions::zone_frames, kSwitch>(
        "STROBE_ZONE_FRAMES", "collector.zone_frames",
        "Whether zones are frames at the root of their samples' stacks, beside being a label."),
    Row<&ProfilerOptions::keep, &KeepOptions::last_s, kKeepTime>(
        "STROBE_KEEP_LAST_S", "keep.last_s",
        "Seconds of samples kept in memory, in at most collector.memory_bytes, for a profile of "
        "what was before a moment; 0 for none."),
    SignalRow<&ProfilerOptions::keep, &KeepOptions::dump_signal, kOutsideSignal>(
        "STROBE_KEEP_DUMP_SIGNAL", "keep.dump_signal",
        "A signal from outside that writes what is kept; 0 for none (Linux)."),
    Row<&ProfilerOptions::keep, &KeepOptions::cpu_percent, kCpuPercent>(
        "STROBE_KEEP_CPU_PERCENT", "keep.cpu_percent",
        "Writes what is kept when the process has used so many percent of one CPU for keep.cpu_s; "
        "0 for never."),
    Row<&ProfilerOptions::keep, &KeepOptions::cpu_s, kKeepTime>(
        "STROBE_KEEP_CPU_S", "keep.cpu_s",
        "How many seconds the use of CPUs must be as high as keep.cpu_percent."),
    Row<&ProfilerOptions::keep, &KeepOptions::memory_bytes, kKeepMemory>(
        "STROBE_KEEP_MEMORY_BYTES", "keep.memory_bytes",
        "Writes what is kept when the process's resident memory reaches so many bytes; 0 for "
        "never."),
    Row<&ProfilerOptions::keep, &KeepOptions::memory_growth_bytes, kKeepMemory>(
        "STROBE_KEEP_MEMORY_GROWTH_BYTES", "keep.memory_growth_bytes",
        "Writes what is kept when the process's resident memory has grown by so many bytes, from "
        "the least since the start or since the last such moment; 0 for never."),
    Row<&ProfilerOptions::keep, &KeepOptions::slow_spans, kSwitch>(
        "STROBE_KEEP_SLOW_SPANS", "keep.slow_spans", "Whether a slow span writes what is kept."),
    Row<&ProfilerOptions::symbols, &SymbolOptions::mode, kSymbolMode>(
        "STROBE_SYMBOLS", "symbols.mode",
        "What profiles say of code: none (build ids and addresses), names (of functions), or full "
        "(source lines and inlined functions too, where there is debug information)."),
    Row<&ProfilerOptions::symbols, &SymbolOptions::time_s, kSymbolTime>(
        "STROBE_SYMBOL_TIME_S", "symbols.time_s",
        "Time of each export for reading debug information; the next exports go on with it."),
    Row<&ProfilerOptions::symbols, &SymbolOptions::memory_bytes, kMemory>(
        "STROBE_SYMBOL_MEMORY_BYTES", "symbols.memory_bytes",
        "Memory of the tables of names and lines kept between exports."),
    Row<&ProfilerOptions::symbols, &SymbolOptions::debug_directories, kDirectories>(
        "STROBE_DEBUG_DIRECTORIES", "symbols.debug_directories",
        "Where separate debug information is, with paths separated by a colon."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::directory, kDirectory>(
        "STROBE_OUTPUT_DIRECTORY", "exporter.directory", "Where profiles go; created if missing."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::period_s, kExportPeriod>(
        "STROBE_EXPORT_PERIOD_S", "exporter.period_s", "Time between two exports."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::max_files, kFiles>(
        "STROBE_MAX_FILES", "exporter.max_files",
        "Profiles of this program kept there; older ones are removed."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::max_bytes, kFileBytes>(
        "STROBE_MAX_FILE_BYTES", "exporter.max_bytes",
        "Bytes of this program's profiles kept there; older ones are removed."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::stop_timeout_s, kStopTimeout>(
        "STROBE_STOP_TIMEOUT_S", "exporter.stop_timeout_s",
        "How long Stop waits for the last export before it leaves it behind."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::stop_at_exit, kSwitch>(
        "STROBE_STOP_AT_EXIT", "exporter.stop_at_exit",
        "Whether the program's exit stops a session that still runs, and so exports its "
        "last period (Linux)."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::export_on_signal, kSwitch>(
        "STROBE_EXPORT_ON_SIGNAL", "exporter.export_on_signal",
        "Whether SIGHUP, SIGINT and SIGTERM, unless the program handles or ignores them, export "
        "the "
        "running period before they end the program (Linux)."),
    Row<&ProfilerOptions::exporter, &ExporterOptions::machine_tags, kSwitch>(
        "STROBE_MACHINE_TAGS", "exporter.machine_tags",
        "Whether profiles say which machine they come from: CPUs and their quota, memory, system, "
        "container, process name (Linux)."),
    Row<&ProfilerOptions::worker, &WorkerOptions::enabled, kSwitch>(
        "STROBE_WORKER", "worker.enabled",
        "Whether a worker process makes the profiles (Linux x86-64, strobe-worker)."),
    Row<&ProfilerOptions::worker, &WorkerOptions::command, kWorkerPath>(
        "STROBE_WORKER_COMMAND", "worker.command",
        "The worker: the path of the command strobe; empty runs the program itself once more."),
    Row<&ProfilerOptions::worker, &WorkerOptions::socket, kWorkerPath>(
        "STROBE_WORKER_SOCKET", "worker.socket",
        "Where a worker of many programs listens (strobe worker --listen); empty: none."),
    Row<&ProfilerOptions::worker, &WorkerOptions::fallback, kWorkerFallback>(
        "STROBE_WORKER_FALLBACK", "worker.fallback",
        "Where no worker can be had: none (Start fails) or in_process (samples all the same)."),
};

// The longest record may take half of the ring, framing included. A traits type whose records have
// more words of amounts, context and time must set a larger ring itself.
constexpr std::size_t kWordsAllowedFor = 8;
constexpr std::size_t kFramingBytes = 16;

std::int64_t LeastRingBytes(std::int64_t max_frames) {
  return static_cast<std::int64_t>(std::bit_ceil(
      2 * (RecordBytes(kWordsAllowedFor, static_cast<std::size_t>(max_frames)) + kFramingBytes)));
}

// Each signal has one use.
absl::Status CheckSignals(const ProfilerOptions& options) {
  const std::array<std::pair<std::string_view, std::int64_t>, 3> signals{
      {{"sampling.signal_number", *options.sampling.signal_number},
       {"sampling.toggle_signal", *options.sampling.toggle_signal},
       {"keep.dump_signal", *options.keep.dump_signal}}};
  for (std::size_t i = 1; i < signals.size(); ++i) {
    for (std::size_t other = 0; other < i; ++other) {
      if (signals[i].second == 0 || signals[i].second != signals[other].second) continue;
      return absl::InvalidArgumentError(absl::StrCat(std::string(signals[i].first), " is ",
                                                     signals[i].second, ", as is ",
                                                     std::string(signals[other].first)));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

void ApplyEnvironment(ProfilerOptions& options,
                      const std::function<std::optional<std::string>(const char*)>& environment,
                      const std::function<void(const std::string&)>& warn) {
  internal::ApplyRows(OptionTable(), options, environment, warn);
}

absl::Status Validate(const ProfilerOptions& options) {
  if (absl::Status status = internal::CheckRows(OptionTable(), options); !status.ok())
    return status;
  if (absl::Status status = CheckSignals(options); !status.ok()) return status;
  if (options.keep.has_moments() && *options.keep.last_s <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("keep.last_s is 0: ", KeepOptions::kMoments, " need it"));
  }
  const std::int64_t least = LeastRingBytes(*options.sampling.max_frames);
  if (*options.threads.ring_bytes < least) {
    return absl::InvalidArgumentError(absl::StrCat(
        "threads.ring_bytes is ", *options.threads.ring_bytes, ": stacks of sampling.max_frames = ",
        *options.sampling.max_frames, " frames need ", least));
  }
  return absl::OkStatus();
}

}  // namespace strobe
