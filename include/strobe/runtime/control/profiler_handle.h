// ProfilerHandle: the state of a Profiler, whatever its parts: the options and the core of this
// process.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/control/abstract_core.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// BasicProfiler documents the functions. Thread-safe.
class ProfilerHandle {
 public:
  // If memory runs out, or has run out for `factory`, all calls report that.
  ProfilerHandle(ProfilerOptions options, std::unique_ptr<const CoreFactory> factory);
  ~ProfilerHandle();
  ProfilerHandle(const ProfilerHandle&) = delete;
  ProfilerHandle& operator=(const ProfilerHandle&) = delete;

  Registration RegisterThread(std::string_view name);
  CodeRegistration RegisterCode(const GeneratedCode& code);
  absl::Status Start() { return Call(&AbstractCore::Start); }
  absl::Status Stop() { return Call(&AbstractCore::Stop); }
  absl::Status Flush() { return Call(&AbstractCore::Flush); }
  absl::StatusOr<Profile> Record(const RecordingOptions& options);
  bool CaptureHere(const EventSample& event, const NativeRegisters* registers) const noexcept;
  absl::Status ToggleStatus() { return Call(&AbstractCore::ToggleStatus); }
  [[nodiscard]] Stats GetStats();
  [[nodiscard]] std::string Diagnose();
  [[nodiscard]] const ProfilerOptions& options() const { return options_; }

  // Writes "strobe: `what`: the status' message" to standard error.
  void Warn(const char* what, const absl::Status& status) const;

 private:
  // The core of this process; nullptr if memory runs out. In a fork's child the first use makes a
  // new core. The fork itself does not, because nothing may allocate between a fork and an exec.
  // The parent's core stays as it was at the fork: its threads do not exist in the child, and may
  // hold its locks.
  AbstractCore* Core();
  absl::Status Call(absl::Status (AbstractCore::*function)());

  ProfilerOptions options_;  // never changes after construction
  const std::unique_ptr<const CoreFactory> factory_;
  std::atomic<AbstractCore*> core_{nullptr};
};

}  // namespace internal
}  // namespace strobe
