// Profiler: the one object that owns all of it.
//
// BasicProfiler<Traits> is made of the parts that Traits names; Profiler is the one of the default
// parts. Programs pass `strobe::Profiler&` to their functions and keep it in members.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/clock.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/default_traits.h"
#include "strobe/export/parts.h"
#include "strobe/platform/platform.h"
#include "strobe/profiler_fwd.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/ring/sample_ring.h"
#include "strobe/runtime/profiler_core.h"
#include "strobe/symbolize/symbolizer.h"
#include "strobe/unwind/unwinder.h"

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
  static_assert(Clock<typename Traits::Clock>, "Traits::Clock is not a Clock");
  static_assert(SampleRing<typename Traits::Ring>, "Traits::Ring is not a SampleRing");
  static_assert(Unwinder<typename Traits::Unwinder>, "Traits::Unwinder is not an Unwinder");
  static_assert(Symbolizer<typename Traits::Symbolizer>, "Traits::Symbolizer is not a Symbolizer");
  static_assert(Platform<typename Traits::Platform>, "Traits::Platform is not a Platform");

 public:
  // What code sets in `options` beats the environment's STROBE_* variables, which beat the
  // defaults; STROBE_ENABLED=0 beats all. Nothing is started, opened or installed yet.
  // Where memory runs out, all calls of this Profiler say so, and nothing is ever sampled.
  explicit BasicProfiler(ProfilerOptions options = {}) requires Parts<Traits>::kCanBeMade
      : BasicProfiler(std::move(options), Parts<Traits>{}) {}
  // With parts that have been made already: {.exporter = MyExporter(connection)}.
  BasicProfiler(ProfilerOptions options, Parts<Traits> parts) : parts_(std::move(parts)) {
    static_cast<void>(internal::HasMemoryFor([&] {
      options_ = internal::WithEnvironment<typename Traits::Platform>(std::move(options));
      core_.store(internal::MakeCore<Traits>(options_, parts_).release(),
                  std::memory_order_release);
    }));
  }
  // Stops, if it runs. Registrations that have not ended stay valid, and do nothing more.
  ~BasicProfiler() {
    internal::AbstractCore* const core = core_.load(std::memory_order_acquire);
    if (core == nullptr) return;
    const bool is_own = core->fork_count() == Traits::Platform::ForkCount();
    is_own ? core->Retire() : internal::KeepForEver(core);
  }
  BasicProfiler(const BasicProfiler&) = delete;
  BasicProfiler& operator=(const BasicProfiler&) = delete;

  // Registers the calling thread under `name` (any bytes; at most 63 of them are kept) until the
  // returned object ends, on the same thread. The thread is sampled while the profiler runs. Before
  // or after Start.
  Registration RegisterThread(std::string_view name) {
    internal::AbstractCore* const core = Core();
    return core != nullptr ? core->RegisterThread(name) : Registration(internal::OutOfMemory());
  }

  // Registers code that the program has generated, until the returned object ends; from any thread.
  // Its frames have `code.name` from the next drain on, while a session runs, and in profiles that
  // a drain after the end goes into.
  CodeRegistration RegisterCode(const GeneratedCode& code) {
    internal::AbstractCore* const core = Core();
    return core != nullptr ? core->RegisterCode(code) : CodeRegistration(internal::OutOfMemory());
  }

  // Begins a session. InvalidArgument names the option that is wrong; FailedPrecondition where it
  // runs already or is switched off; Unimplemented where it cannot work; ResourceExhausted, as from
  // all calls with a status, where memory runs out.
  absl::Status Start() { return Call(&internal::AbstractCore::Start); }

  // Ends the session: drains, exports, waits for the export (at most exporter.stop_timeout_s). The
  // status is the export's.
  absl::Status Stop() { return Call(&internal::AbstractCore::Stop); }

  // Exports what has been sampled so far, and waits for it like Stop. The session goes on.
  absl::Status Flush() { return Call(&internal::AbstractCore::Flush); }

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
    internal::AbstractCore* const core = Core();
    if (core == nullptr) return internal::OutOfMemory();
    return core->Record(options);
  }

  // The account since construction. Never waits for an export. Where memory runs out, all is 0 but
  // Stats::out_of_memory.
  [[nodiscard]] Stats stats() {
    if (internal::AbstractCore* const core = Core()) return core->GetStats();
    Stats none;
    none.out_of_memory = 1;
    return none;
  }

  // "Why do I see no samples?" in plain words.
  [[nodiscard]] std::string Diagnose() {
    internal::AbstractCore* const core = Core();
    return core != nullptr ? core->Diagnose() : "Out of memory.";
  }

  // The options in force.
  [[nodiscard]] const ProfilerOptions& options() const { return options_; }

 private:
  // The core of this process. In a fork's child the first use makes it, and not the fork, between
  // which and an exec nothing may allocate. The parent's core is left as it was at the fork: its
  // threads are not here, and its locks may be held by them. nullptr where memory runs out.
  internal::AbstractCore* Core() {
    internal::AbstractCore* core = core_.load(std::memory_order_acquire);
    if (core == nullptr || core->fork_count() == Traits::Platform::ForkCount()) return core;
    std::unique_ptr<internal::AbstractCore> own;
    if (!internal::HasMemoryFor([&] { own = internal::MakeCore<Traits>(options_, parts_); }))
      return nullptr;
    // Where another thread was faster, its core it is.
    if (!core_.compare_exchange_strong(core, own.get(), std::memory_order_acq_rel)) return core;
    internal::KeepForEver(core);
    return own.release();
  }

  absl::Status Call(absl::Status (internal::AbstractCore::*function)()) {
    internal::AbstractCore* const core = Core();
    return core != nullptr ? (core->*function)() : internal::OutOfMemory();
  }

  ProfilerOptions options_;  // never changes once it is constructed
  const Parts<Traits> parts_;
  std::atomic<internal::AbstractCore*> core_{nullptr};
};
STROBE_HOLDS_HIDDEN_END

// Compiled in the library, once for all programs that keep the default parts.
extern template std::unique_ptr<internal::AbstractCore> internal::MakeCore<DefaultTraits>(
    ProfilerOptions options, Parts<DefaultTraits> parts);

}  // namespace strobe
