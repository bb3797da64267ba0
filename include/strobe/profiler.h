// Profiler: the one object that owns all of it.
//
// BasicProfiler<Traits> is made of the parts that Traits names; Profiler is the one of the default
// parts. Programs pass `strobe::Profiler&` to their functions and keep it in members.
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
#include "strobe/runtime/abstract_core.h"
#include "strobe/runtime/profiler_handle.h"

namespace strobe {

// Construct one in main, before the threads that it is to see and outside of their lifetimes;
// register threads; Start.
//
//   strobe::Profiler profiler;
//   auto registration = profiler.RegisterThread("main");
//   strobe::ScopedProfiler session(profiler);
//
// Thread-safe. After a fork the child's copy is a profiler of its own: not running, no thread
// registered, free to begin a session.
STROBE_HOLDS_HIDDEN_BEGIN
template <class Traits>
class BasicProfiler final {
 public:
  // What code sets in `options` beats the environment's STROBE_* variables, which beat the
  // defaults; STROBE_ENABLED=0 beats all. Nothing is started, opened or installed yet.
  // Where memory runs out, all calls of this Profiler say so, and nothing is ever sampled.
  explicit BasicProfiler(ProfilerOptions options = {})
      : handle_(std::move(options), internal::MakeCoreFactory<Traits>()) {}
  // With parts that have been made already: {.exporter = MyExporter(connection)}.
  template <class T = Traits>
  BasicProfiler(ProfilerOptions options, Parts<T> parts)
      : handle_(std::move(options), internal::MakeCoreFactory<Traits>(std::move(parts))) {}
  // Stops, if it runs. Registrations that have not ended stay valid, and do nothing more.
  ~BasicProfiler() = default;
  BasicProfiler(const BasicProfiler&) = delete;
  BasicProfiler& operator=(const BasicProfiler&) = delete;

  // Registers the calling thread under `name` (any bytes; at most 63 of them are kept) until the
  // returned object ends, on the same thread. The thread is sampled while the profiler runs. Before
  // or after Start.
  Registration RegisterThread(std::string_view name) { return handle_.RegisterThread(name); }

  // Registers code that the program has generated, until the returned object ends; from any thread.
  // Its frames have `code.name` from the next drain on, while a session runs, and in profiles that
  // a drain after the end goes into.
  CodeRegistration RegisterCode(const GeneratedCode& code) { return handle_.RegisterCode(code); }

  // Begins a session. InvalidArgument names the option that is wrong; FailedPrecondition where it
  // runs already or is switched off; Unimplemented where it cannot work; ResourceExhausted, as from
  // all calls with a status, where memory runs out.
  absl::Status Start() { return handle_.Start(); }

  // Ends the session: drains, exports, waits for the export (at most exporter.stop_timeout_s). The
  // status is the export's.
  absl::Status Stop() { return handle_.Stop(); }

  // Exports what has been sampled so far, and waits for it like Stop. The session goes on.
  absl::Status Flush() { return handle_.Flush(); }

  // Records for that time, beside the continuous export, and returns the profile: when the time is
  // over, or the session ends before. The export is the same with it and without. From any thread,
  // kMaxRecordings of them at a time; a call returns before the Profiler is destroyed. A symbolizer
  // names the profile's functions, and encoders take it.
  //
  // FailedPrecondition where no session runs; InvalidArgument names the option that is wrong, or a
  // value type that is not enabled; ResourceExhausted where as many record already, or memory runs
  // out.
  absl::StatusOr<Profile> Record(std::chrono::milliseconds duration) {
    return Record(RecordingOptions{.duration = duration});
  }
  // With columns of its own: profiler.Record({.duration = 30s, .value_types = {"wall"}}).
  absl::StatusOr<Profile> Record(const RecordingOptions& options) {
    return handle_.Record(options);
  }

  // Gives the stack of the calling function one event of an EventProvider: an amount for each of
  // its value types. The stack is shown without the `skip` frames next to the caller's end, such as
  // those of a hook. False, and nothing is counted, where the calling thread is not registered, or
  // no session runs whose options enable the provider.
  //
  //   profiler.CaptureHere<AllocationProvider>({1, bytes});
  //
  // Signal-safe: it takes no memory and no lock. It may be called in an allocator, and in a
  // signal's handler that has interrupted such a call. That handler must return: after a jump out
  // of it, the thread's amounts are only counted, as [lost], until its registration ends.
  template <class Provider>
  STROBE_ALWAYS_INLINE bool CaptureHere(
      const std::array<std::int64_t, Provider::kValueTypes.size()>& amounts,
      std::uint32_t skip = 0) noexcept {
    static_assert(EventProvider<Provider>, "a provider whose events the program brings");
    const internal::EventSample event{.provider = Traits::Providers::template IndexOf<Provider>(),
                                      .amounts = amounts,
                                      .skip = skip};
    const CurrentRegisters registers;
    return handle_.CaptureHere(event, registers.get());
  }

  // The account since construction. Never waits for an export. Where memory runs out, all is 0 but
  // Stats::out_of_memory.
  [[nodiscard]] Stats stats() { return handle_.GetStats(); }

  // "Why do I see no samples?" in plain words.
  [[nodiscard]] std::string Diagnose() { return handle_.Diagnose(); }

  // The options in force.
  [[nodiscard]] const ProfilerOptions& options() const { return handle_.options(); }

 private:
  friend class BasicScopedProfiler<Traits>;

  internal::ProfilerHandle handle_;
};
STROBE_HOLDS_HIDDEN_END

// Compiled in the library, once for all programs that keep the default parts.
extern template std::unique_ptr<const internal::CoreFactory>
internal::MakeCoreFactory<DefaultTraits>();

}  // namespace strobe
