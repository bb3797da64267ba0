// ProfilerHandle: the state of a Profiler, whatever its parts: the options and the core of this
// process.
#pragma once

#include <atomic>
#include <cstdint>
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
#include "strobe/runtime/control/fork_list.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// BasicProfiler documents the functions. Thread-safe.
class ProfilerHandle : private FollowsForks {
 public:
  // If memory runs out, or has run out for `factory`, all calls report that.
  ProfilerHandle(ProfilerOptions options, std::unique_ptr<const CoreFactory> factory);
  ~ProfilerHandle();
  ProfilerHandle(const ProfilerHandle&) = delete;
  ProfilerHandle& operator=(const ProfilerHandle&) = delete;

  Registration RegisterThread(std::string_view name);
  CodeRegistration RegisterCode(const GeneratedCode& code);
  absl::Status Start();
  absl::Status Stop();
  absl::Status Flush() { return Call(&AbstractCore::Flush); }
  absl::StatusOr<Profile> Record(const RecordingOptions& options);
  absl::Status DumpLast() { return Call(&AbstractCore::DumpLast); }
  bool CaptureHere(const EventSample& event, const NativeRegisters* registers) const noexcept;
  absl::Status ToggleStatus() { return Call(&AbstractCore::ToggleStatus); }
  [[nodiscard]] Stats GetStats();
  [[nodiscard]] std::string Diagnose();
  [[nodiscard]] const ProfilerOptions& options() const { return options_; }

  // Writes "strobe: `what`: the status' message" to standard error.
  void Warn(const char* what, const absl::Status& status) const;

 private:
  // The core of this process; nullptr if memory runs out. In a fork's child the first use makes a
  // new core. The fork itself does not, because nothing may allocate between a fork and an exec;
  // threads.follow_forks asks for a child that may.
  // The parent's core stays as it was at the fork: its threads do not exist in the child, and may
  // hold its locks.
  AbstractCore* Core();
  absl::Status Call(absl::Status (AbstractCore::*function)());
  // The program's own calls come before what a followed fork does by itself.
  void EndSuccessorOfThisThread();
  void StartNoMore();

  void NoteBeforeFork() override;
  bool GoOnInChild() override;
  void StartInChild() override;

  ProfilerOptions options_;  // never changes after construction
  const std::unique_ptr<const CoreFactory> factory_;
  std::atomic<AbstractCore*> core_{nullptr};

  // For threads.follow_forks. The forking thread writes the note, and reads it in the child.
  struct NoteOfFork {
    AbstractCore* core = nullptr;  // nullptr: nothing goes on
    AbstractCore::OwnRegistration registration;
    bool has_session = false;
  };
  bool is_followed_ = false;
  NoteOfFork note_;
  // In a child: the thread whose registration is a successor, and the core that has the successor.
  std::atomic<std::uint64_t> successor_thread_{0};  // 0 for none
  AbstractCore* succeeded_core_ = nullptr;
  std::atomic<bool> will_start_{false};       // once the child has lived long enough
  std::atomic<bool> was_started_for_{false};  // the program, which has not called Start itself
};

}  // namespace internal
}  // namespace strobe
