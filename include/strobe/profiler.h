// Profiler: the object that owns the whole profiler.
//
// BasicProfiler<Traits> consists of the parts that Traits names. Profiler consists of the default
// parts. Programs can pass `strobe::Profiler&` to functions and keep it in members.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/arch/current_registers.h"
#include "strobe/base/checked_containers.h"  // IWYU pragma: keep
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/profiler_fwd.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/control/abstract_core.h"
#include "strobe/runtime/control/profiler_handle.h"

namespace strobe {

// Construct one in main, so that it outlives the threads to be profiled. Register the threads, and
// call Start.
//
//   strobe::Profiler profiler;
//   auto registration = profiler.RegisterThread("main");
//   strobe::ScopedProfiler session(profiler);
//
// Thread-safe. After a fork, the child's copy is a separate profiler: it is not running, no thread
// is registered, and it can begin a session; with threads.follow_forks, it goes on by itself.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
template <class Traits>
class BasicProfiler final {
 public:
  // What code sets in `options` beats the environment's STROBE_* variables, which beat the
  // defaults; STROBE_ENABLED=0 beats all. The constructor starts, opens and installs nothing, but
  // for what sampling.toggle_signal needs. If memory runs out, all later calls report it, and
  // nothing is ever sampled.
  explicit BasicProfiler(ProfilerOptions options = {})
      : handle_(std::move(options), internal::MakeCoreFactory<Traits>()) {}
  // With parts that the program has made: {.exporter = MyExporter(connection)}.
  template <class T = Traits>
  BasicProfiler(ProfilerOptions options, Parts<T> parts)
      : handle_(std::move(options), internal::MakeCoreFactoryOf<Traits>(std::move(parts))) {}
  // Stops a running session. Registrations that have not ended stay valid and do nothing.
  ~BasicProfiler() = default;
  BasicProfiler(const BasicProfiler&) = delete;
  BasicProfiler& operator=(const BasicProfiler&) = delete;

  // Registers the calling thread under `name` (any bytes; at most 63 are kept) until the returned
  // object ends, which must be on the same thread. The thread is sampled while the profiler runs.
  // May be called before or after Start.
  Registration RegisterThread(std::string_view name) { return handle_.RegisterThread(name); }

  // Registers code that the program has generated, until the returned object ends. May be called
  // from any thread. While a session runs, the code's frames have `code.name` from the next
  // drain on. A profile that includes a drain after the registration's end has the name, too.
  CodeRegistration RegisterCode(const GeneratedCode& code) { return handle_.RegisterCode(code); }

  // Begins a session. Errors: InvalidArgument names the option that is wrong; FailedPrecondition if
  // a session runs already, the profiler is switched off, or an exporter cannot deliver (for
  // example, exporter.directory is a file); Unimplemented if the system does not
  // allow it; ResourceExhausted, as from all calls with a status, if memory runs out.
  absl::Status Start() { return handle_.Start(); }

  // Ends the session: drains, exports, waits for the export (at most exporter.stop_timeout_s). The
  // status is the export's.
  absl::Status Stop() { return handle_.Stop(); }

  // OK if sampling.toggle_signal is 0, or if that signal begins and ends sessions, and the same for
  // keep.dump_signal.
  // FailedPrecondition if the signal has a handler of the program, or belongs to another profiler;
  // Unimplemented where there are no signals. The constructor writes such a failure to stderr.
  absl::Status toggle_status() { return handle_.ToggleStatus(); }

  // Exports what has been sampled so far, and waits for it like Stop. The session goes on.
  absl::Status Flush() { return handle_.Flush(); }

  // Records for `duration`, independently of the continuous export. Returns the profile when the
  // time is over or the session ends. The call does not change the export. May be called from
  // any thread; at most kMaxRecordings calls can run at a time. The call must return before the
  // Profiler is destroyed. A symbolizer can name the profile's functions, and an encoder can encode
  // it.
  //
  // Errors: FailedPrecondition if no session runs; InvalidArgument names the option that is wrong,
  // or a value type that is not enabled; ResourceExhausted if kMaxRecordings run already, or memory
  // runs out.
  absl::StatusOr<Profile> Record(std::chrono::milliseconds duration) {
    return Record(RecordingOptions{.duration = duration});
  }
  // With columns of its own: profiler.Record({.duration = 30s, .value_types = {"wall"}}).
  absl::StatusOr<Profile> Record(const RecordingOptions& options) {
    return handle_.Record(options);
  }

  // Writes what is kept of the last keep.last_s seconds, by each output that takes windows: a
  // FileExporter writes into `last` inside exporter.directory. Waits for it like Flush. Takes the
  // place of one of kMaxRecordings calls of Record for a moment. For the profile itself, call
  // Record({.last = std::chrono::seconds(30)}).
  //
  // Errors: FailedPrecondition if no session runs, nothing is kept, or no output takes windows;
  // ResourceExhausted if memory runs out, or too many windows wait for the outputs, or calls are
  // under way; DeadlineExceeded like Flush; else that of the outputs, which do not try it again.
  absl::Status DumpLast() { return handle_.DumpLast(); }

  // Records one event of an EventProvider with the stack of the calling function: `amounts` has an
  // amount for each of its value types. The profile shows the stack without its `skip` leaf frames,
  // such as those of a hook. Returns false and counts nothing if no session runs whose options
  // enable the provider. The events of all threads that are not registered are in the rows of one
  // thread, which is called "[unregistered thread]"; each costs some system calls.
  //
  //   profiler.CaptureHere<AllocationProvider>({1, bytes});
  //
  // Signal-safe: it takes no memory and no lock. It may be called in an allocator, and in a signal
  // handler that has interrupted such a call. That handler must return: after a jump out of it, the
  // thread's amounts go to [lost] until its registration ends.
  template <class Provider>
  STROBE_ALWAYS_INLINE bool CaptureHere(
      const std::array<std::int64_t, Provider::kValueTypes.size()>& amounts, std::uint32_t skip = 0,
      internal::StackKeeper* keeper = nullptr) noexcept {
    static_assert(EventProvider<Provider>, "a provider whose events the program brings");
    const internal::EventSample event{.provider = Traits::Providers::template IndexOf<Provider>(),
                                      .amounts = amounts,
                                      .skip = skip,
                                      .keeper = keeper};
    const CurrentRegisters registers;
    return handle_.CaptureHere(event, registers.get());
  }

  // The statistics since construction. Never waits for an export. If memory runs out, all but
  // Stats::out_of_memory is 0.
  [[nodiscard]] Stats stats() { return handle_.GetStats(); }

  // Text for people that answers "Why do I see no samples?".
  [[nodiscard]] std::string Diagnose() { return handle_.Diagnose(); }

  // The options in force.
  [[nodiscard]] const ProfilerOptions& options() const { return handle_.options(); }

 private:
  friend class BasicScopedProfiler<Traits>;

  internal::ProfilerHandle handle_;
};
#pragma GCC diagnostic pop

// Compiled in the library, once for all programs that keep the default parts.
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<DefaultTraits>();

}  // namespace strobe
