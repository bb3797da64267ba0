// ProfilerFromEnvironment: a profiler that runs only if the environment asks for it.
//
//   int main() {
//     strobe::ProfilerFromEnvironment profiler("main");
//     RunYourProgram();
//   }
//
//   $ STROBE_OUTPUT_DIRECTORY=profiles ./program
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "strobe/core/options.h"
#include "strobe/core/registration.h"
#include "strobe/profiler.h"
#include "strobe/scoped_profiler.h"

namespace strobe {

// A session from the object's construction to its end, if a variable of src/docs/options.md is set
// and not empty: STROBE_ENABLED=1 asks for a session with the defaults. With STROBE_TOGGLE_SIGNAL
// and without STROBE_ENABLED, that signal begins the session. Without one, or with
// STROBE_ENABLED=0, there is no profiler: the object reads the environment, and does nothing else.
//
// Thread-safe. It must end on the thread that it began on. After a fork, the child has no session.
class [[nodiscard]] ProfilerFromEnvironment {
 public:
  // Registers the calling thread under `thread_name`, and starts. What code sets in `options` beats
  // the environment. A failure writes one line to stderr, and is also status().
  explicit ProfilerFromEnvironment(std::string_view thread_name, ProfilerOptions options = {});
  // Stops and exports. A failure writes one line to stderr.
  ~ProfilerFromEnvironment() = default;
  ProfilerFromEnvironment(const ProfilerFromEnvironment&) = delete;
  ProfilerFromEnvironment& operator=(const ProfilerFromEnvironment&) = delete;

  // Registers the calling thread, as a Profiler does. Registers nothing if there is no profiler.
  Registration RegisterThread(std::string_view name);

  // OK if the session began, or its signal is awaited; Cancelled if the environment does not ask
  // for one, and otherwise the reason why it did not begin.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  // The profiler, for all else that it can do. nullptr if the environment does not ask for one.
  [[nodiscard]] Profiler* profiler() { return profiler_ ? &*profiler_ : nullptr; }

 private:
  void Begin(std::string_view thread_name, ProfilerOptions options);

  absl::Status status_;
  std::optional<Profiler> profiler_;
  Registration registration_;
  std::optional<ScopedProfiler> session_;
};

}  // namespace strobe
