// ProfilerHandle: what a Profiler is, whatever its parts: its options and the core of this process.
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
#include "strobe/runtime/abstract_core.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The functions are BasicProfiler's, which documents them. Thread-safe.
class ProfilerHandle {
 public:
  // Where memory runs out, or ran out for `factory`, all calls say so.
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
  [[nodiscard]] Stats GetStats();
  [[nodiscard]] std::string Diagnose();
  [[nodiscard]] const ProfilerOptions& options() const { return options_; }

  // "strobe: `what`: the status' message" on standard error.
  void Warn(const char* what, const absl::Status& status) const;

 private:
  // The core of this process. In a fork's child the first use makes it, and not the fork, between
  // which and an exec nothing may allocate. The parent's core is left as it was at the fork: its
  // threads are not here, and its locks may be held by them. nullptr where memory runs out.
  AbstractCore* Core();
  absl::Status Call(absl::Status (AbstractCore::*function)());

  ProfilerOptions options_;  // never changes once it is constructed
  const std::unique_ptr<const CoreFactory> factory_;
  std::atomic<AbstractCore*> core_{nullptr};
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
