// Every option of the profiler, with its default. This is the one list of option defaults; the
// table in src/core/settings/options.cc binds each to its environment variable and to its accepted
// range, and src/docs/options.md shows that table.
//
//   strobe::Profiler profiler(
//       {.sampling = {.wall_frequency_hz = 10}, .exporter = {.directory = "profiles"}});
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace strobe {

// A value, and whether code has set it. Code beats the environment, and the environment beats the
// default.
template <class T>
class Option {
 public:
  // A value that code has not set: the default, or the environment's.
  struct Default {
    T value;
  };
  // The types that code may assign: a switch takes no number, and an integer takes no fraction.
  template <class U>
  static constexpr bool kIsSwitchIfWanted = !std::same_as<T, bool> || std::same_as<U, bool>;
  template <class U>
  static constexpr bool kIsIntegerIfWanted = !std::integral<T> || std::integral<U>;
  template <class U>
  static constexpr bool kIsValue =
      std::convertible_to<U, T> && !std::same_as<U, Option> && !std::same_as<U, Default> &&
      kIsSwitchIfWanted<U> && kIsIntegerIfWanted<U>;

  // NOLINTNEXTLINE(google-explicit-constructor): reads as an assignment
  Option(Default initial) : value_(std::move(initial.value)) {}

  // A value that code sets. kIsValue excludes Option itself.
  // NOLINTBEGIN(google-explicit-constructor,bugprone-forwarding-reference-overload)
  template <class U>
  requires(kIsValue<std::remove_cvref_t<U>>) Option(U&& value)
      : value_(std::forward<U>(value)), is_set_(true) {}
  // NOLINTEND(google-explicit-constructor,bugprone-forwarding-reference-overload)

  [[nodiscard]] const T& get() const { return value_; }
  [[nodiscard]] bool is_set() const { return is_set_; }
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }

 private:
  T value_;
  bool is_set_ = false;
};

// What triggers a sample of a thread's CPU time. See CpuTimeProvider.
enum class SampleTrigger : std::uint8_t {
  kAuto,    // for each thread, the cheaper of those that its work cannot be in step with
  kTimers,  // timers on threads' CPU clocks, which expire on the kernel's tick
  kRandom,  // random instants
  kPerf,    // random timers by perf events, where the system allows them; random instants elsewhere
};

struct SamplingOptions {
  // Samples per second of a thread's CPU time; 0 turns the CPU provider off.
  Option<double> cpu_frequency_hz = Option<double>::Default{100};
  // Polls per second of every registered thread, running or waiting; fewer if they would take more
  // than 1 % of a core. 0 (the default) turns the wall provider off. 10 is a good rate.
  Option<double> wall_frequency_hz = Option<double>::Default{0};
  // Frames per stack; deeper stacks end in [truncated].
  Option<std::int64_t> max_frames = Option<std::int64_t>::Default{512};
  // The signal that interrupts threads. 0 takes the first candidate that the program does not use
  // when a session starts. On Linux, the candidates are SIGURG (23), then SIGSTKFLT (16). The
  // default action of SIGURG is to ignore it, so one that is pending at an exec never kills the new
  // image. Signals below SIGRTMIN do not queue: one that the program sends with the same number is
  // lost if one of the profiler's is pending.
  Option<std::int64_t> signal_number = Option<std::int64_t>::Default{0};
  // A signal from outside that begins a session, or ends the running one: kill -USR2. Signals that
  // come before an earlier one was served count as one. 0 for none. With one, the profiler has a
  // thread while it lives. The signal must have no handler of the program. Linux only.
  Option<std::int64_t> toggle_signal = Option<std::int64_t>::Default{0};
  // True unblocks signal_number in each thread while it is registered. Do not use it with a thread
  // that waits for all signals: sigwait would return this signal.
  Option<bool> unblock_signal = Option<bool>::Default{false};
  // What triggers the samples of CPU time.
  Option<SampleTrigger> trigger = Option<SampleTrigger>::Default{SampleTrigger::kAuto};
  // The share of the process's own CPU time that samples at random instants may cost. Their rate
  // falls below cpu_frequency_hz, down to 1 Hz, to keep to it.
  Option<double> max_overhead = Option<double>::Default{0.005};
  // True keeps the time of each sample (Profile::moments), at the cost of a look at the clock. For
  // the limit, see MomentTable.
  Option<bool> timestamps = Option<bool>::Default{false};
};

struct ThreadOptions {
  // The most threads that can be registered at a time.
  Option<std::int64_t> max_threads = Option<std::int64_t>::Default{16384};
  // Size of each thread's ring, a power of two, committed by the page. With events it is 256 KiB.
  Option<std::int64_t> ring_bytes = Option<std::int64_t>::Default{32 * 1024};
  // A thread whose stack is smaller gets an alternate one for signals while it is registered,
  // unless it has one: the kernel's frame alone takes up to 11 KiB. 0 gives none. Linux only.
  Option<std::int64_t> least_stack_bytes = Option<std::int64_t>::Default{64 * 1024};
  // True puts the threads' rings into core dumps: a core has the last samples of each thread then,
  // and some MB more. Linux only.
  Option<bool> rings_in_cores = Option<bool>::Default{false};
  // True lets a fork's child go on, as servers need it that fork their workers. If the forking
  // thread is registered, the child's thread is registered under the same name, as long as the
  // parent's Registration lives in the child. If a session runs, the child begins one once it has
  // lived for 10 ms; a Start by the child itself comes first, or takes that session over. Not in
  // children of _Fork, vfork or clone, and not by a Profiler that lies on the stack of a thread
  // which is neither the first nor the forking one. The child has one thread more from its fork on,
  // and allocates in the fork: not for programs that fork in signal handlers, or whose children
  // need to have one thread. Linux only.
  Option<bool> follow_forks = Option<bool>::Default{false};
};

struct CollectorOptions {
  // Time between two drains; down to 5 ms while rings run full, and up to a second while they stay
  // nearly empty.
  Option<std::int64_t> drain_period_ms = Option<std::int64_t>::Default{60};
  // Memory of one period's stacks; what does not fit goes into [overflow].
  Option<std::int64_t> memory_bytes = Option<std::int64_t>::Default{64 * 1024 * 1024};
  // True shows the zones of samples (see ScopedZone) as frames at the root of their stacks, beside
  // the label that they have in any case.
  Option<bool> zone_frames = Option<bool>::Default{false};
};

// The flight recorder: what was before a moment that matters.
struct KeepOptions {
  // Keeps the samples of so many seconds in memory, in kKeptSlices slices of at most
  // collector.memory_bytes together: for BasicProfiler::DumpLast, RecordingOptions::last and the
  // moments below. 0 keeps nothing, and costs nothing.
  Option<double> last_s = Option<double>::Default{0};
  // A signal from outside that writes what is kept: kill -USR1. As sampling.toggle_signal.
  Option<std::int64_t> dump_signal = Option<std::int64_t>::Default{0};
  // Writes what is kept when the process has used at least so many percent of one CPU for cpu_s: of
  // two CPUs, 200. 0 for never.
  Option<double> cpu_percent = Option<double>::Default{0};
  Option<double> cpu_s = Option<double>::Default{5};
  // Writes what is kept when the process's resident memory reaches so many bytes, and when it has
  // grown by so many, from the least since the start or since the last such moment. 0 for never.
  Option<std::int64_t> memory_bytes = Option<std::int64_t>::Default{0};
  Option<std::int64_t> memory_growth_bytes = Option<std::int64_t>::Default{0};
  // True writes what is kept when a SlowSpan has ended after its threshold.
  Option<bool> slow_spans = Option<bool>::Default{false};

  // The options that name a moment, and whether one of them is set.
  static constexpr char kMoments[] =
      "keep.dump_signal, keep.cpu_percent, keep.memory_bytes, keep.memory_growth_bytes and "
      "keep.slow_spans";
  [[nodiscard]] bool has_moments() const {
    return *dump_signal != 0 || *cpu_percent > 0 || *memory_bytes > 0 || *memory_growth_bytes > 0 ||
           *slow_spans;
  }
};

struct ExporterOptions {
  // Where profiles go; created if missing.
  Option<std::string> directory = Option<std::string>::Default{"strobe-profiles"};
  // Time between two exports.
  Option<double> period_s = Option<double>::Default{60};
  // Profiles of this program kept in the directory; older ones are removed.
  Option<std::int64_t> max_files = Option<std::int64_t>::Default{100};
  // Bytes of this program's profiles kept in the directory.
  Option<std::int64_t> max_bytes = Option<std::int64_t>::Default{256 * 1024 * 1024};
  // How long Stop waits for the last export before it abandons the export.
  Option<double> stop_timeout_s = Option<double>::Default{10};
  // True stops a running session, and so exports it, when the program calls exit or returns from
  // main. Linux only.
  Option<bool> stop_at_exit = Option<bool>::Default{true};
  // True exports a running session before SIGHUP, SIGINT (Ctrl-C) or SIGTERM ends the process, for
  // stop_timeout_s at most. Only if the signal's action is the default one when the session starts;
  // a handler that the program installs later takes its place. The thread that gets the signal goes
  // no further, other threads run on until the export is done. A signal that comes more than a
  // second after the first ends the process at once. A worker exports in any case. Linux only.
  Option<bool> export_on_signal = Option<bool>::Default{false};
  // True says in each profile which machine and which container it comes from: see
  // encode/machine_tags.h. Read when a session starts. Linux only.
  Option<bool> machine_tags = Option<bool>::Default{true};
};

// What a profile says of its code.
enum class SymbolMode : std::uint8_t {
  kNone,   // build ids and addresses only
  kNames,  // the names of functions, from symbol tables
  kFull,   // source lines and inlined functions too, from debug information
};

struct SymbolOptions {
  Option<SymbolMode> mode = Option<SymbolMode>::Default{SymbolMode::kNames};
  // Time that each export may spend on debug information. What is not done by then is done in the
  // next exports. An export does at least a little, so that all is done in the end.
  Option<double> time_s = Option<double>::Default{5};
  // Memory of the tables and lines kept from one export to the next. While an export is made, there
  // may be three times as much. A unit of debug information that is larger has no lines.
  Option<std::int64_t> memory_bytes = Option<std::int64_t>::Default{64 * 1024 * 1024};
  // Where separate debug information is (see SymbolSearch): paths separated by ':' or ';'.
  Option<std::string> debug_directories = Option<std::string>::Default{"/usr/lib/debug"};
};

// What a profiler does that should have a worker and can have none.
enum class WorkerFallback : std::uint8_t {
  kNone,       // samples nothing: Start fails
  kInProcess,  // samples all the same, with threads in the program
};

// For a process beside the program that makes the profiles: see worker/README.md.
struct WorkerOptions {
  // True leaves all but the taking of samples to a worker process. Needs the library strobe-worker.
  // Linux x86-64 only.
  Option<bool> enabled = Option<bool>::Default{false};
  // The program to run as the worker: the path of the command `strobe`. Empty runs the program
  // itself once more, whose main calls RunWorkerIfAsked first.
  Option<std::string> command = Option<std::string>::Default{""};
  // Where a worker listens that serves many programs (strobe worker --listen). Without one, or if
  // it refuses, the program begins a worker of its own.
  Option<std::string> socket = Option<std::string>::Default{""};
  // If no worker can be begun, or if workers have died too often.
  Option<WorkerFallback> fallback = Option<WorkerFallback>::Default{WorkerFallback::kNone};
};

struct ProfilerOptions {
  // The kill switch. STROBE_ENABLED=0 beats even code.
  Option<bool> enabled = Option<bool>::Default{true};
  // Each group has an initialiser, so that naming only some of them draws no warning
  // (-Wmissing-field-initializers).
  SamplingOptions sampling = {};
  ThreadOptions threads = {};
  CollectorOptions collector = {};
  KeepOptions keep = {};
  SymbolOptions symbols = {};
  ExporterOptions exporter = {};
  WorkerOptions worker = {};
};

// Who gives an option's text.
enum class OptionSource : std::uint8_t {
  kEnvironment,  // does not change what code has set
  kCode,         // counts as set by code
};

// One row of a table of options. Options is the struct that has them.
template <class Options>
struct BasicOptionRow {
  std::string_view variable;     // "STROBE_CPU_FREQUENCY_HZ"
  std::string_view field;        // "sampling.cpu_frequency_hz"
  std::string_view accepted;     // "a number from 0 to 10000"
  std::string_view description;  // one sentence
  // Writes the current value as text.
  std::string (*get)(const Options&);
  // Sets the option from `text`, which `source` gives. Returns false and changes nothing if the
  // text is not accepted.
  bool (*set)(Options&, std::string_view text, OptionSource source);
  // True if the value lies in the accepted range.
  bool (*valid)(const Options&);
  // True if code has set it.
  bool (*is_set)(const Options&);
  bool is_secret = false;  // then no message shows the value
};
using OptionRow = BasicOptionRow<ProfilerOptions>;

// Every option, in the order of the structs above.
std::span<const OptionRow> OptionTable();

// Applies the environment to the options that code has not set. `environment` returns a variable's
// value, if it has one. For each value that is not accepted, `warn` gets one line that names the
// variable, the value and the accepted range; the option stays as it was.
void ApplyEnvironment(ProfilerOptions& options,
                      const std::function<std::optional<std::string>(const char*)>& environment,
                      const std::function<void(const std::string&)>& warn);

// InvalidArgument with the field's name for the first option out of its range, or for two options
// that contradict each other.
absl::Status Validate(const ProfilerOptions& options);

}  // namespace strobe
