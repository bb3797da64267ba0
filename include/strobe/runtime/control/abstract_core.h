// AbstractCore: the interface of a Profiler's core. CoreFactory: makes a core. The library holds
// the compiled default parts, so a program that keeps them compiles no part itself.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/arch/registers.h"
#include "strobe/base/visibility.h"
#include "strobe/core/generated_code.h"
#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/registration.h"
#include "strobe/core/stats.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/session/session_status.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class AbstractCore : public RegistrationOwner {
 public:
  AbstractCore() = default;
  virtual ~AbstractCore() = default;
  AbstractCore(const AbstractCore&) = delete;
  AbstractCore& operator=(const AbstractCore&) = delete;

  // True if this process made the core. In a fork's child, only registrations that end still use
  // the parent's core.
  [[nodiscard]] virtual bool IsOfThisProcess() const = 0;
  virtual Registration RegisterThread(std::string_view name) = 0;
  virtual CodeRegistration RegisterCode(const GeneratedCode& code) = 0;
  virtual absl::Status Start() = 0;
  virtual absl::Status Stop() = 0;
  virtual absl::Status Flush() = 0;
  virtual absl::StatusOr<Profile> Record(const RecordingOptions& options) = 0;
  // Writes what is kept: see KeepOptions.
  virtual absl::Status DumpLast() = 0;
  // Signal-safe. `registers` belong to a function of the calling thread that has not returned.
  virtual bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept = 0;
  // OK if sampling.toggle_signal is 0 or toggles sessions, otherwise why not. The first call begins
  // to await the signal.
  virtual absl::Status ToggleStatus() = 0;
  virtual Stats GetStats() = 0;
  virtual std::string Diagnose() = 0;
  // The Profiler's destructor calls this. Ends the session. Deletes the object, at once or when its
  // last registration ends.
  virtual void Retire() = 0;

  // For threads.follow_forks, on the thread that forks next: neither of the two waits for a lock.
  [[nodiscard]] virtual bool IsRunning() const = 0;
  // The calling thread's registration; `registered` is nullptr without one.
  struct OwnRegistration {
    void* registered = nullptr;
    std::string_view name;
  };
  [[nodiscard]] virtual OwnRegistration FindOwnRegistration() const = 0;

  // In a fork's child, of the core that the fork has left behind: when `registered`, which the
  // parent has made, ends in the child, so does its `successor`, a registration with the child's
  // core. Called by the child's thread.
  void SetSuccessor(const void* registered, Registration successor) noexcept {
    succeeded_ = registered;
    successor_ = std::move(successor);
  }
  void EndSuccessor() noexcept { const Registration ended = std::move(successor_); }

 protected:
  // The end of a registration in a process that has not made it.
  void EndSuccessorOf(const void* registered) noexcept {
    if (registered == succeeded_) EndSuccessor();
  }

 private:
  const void* succeeded_ = nullptr;
  Registration successor_;
};

// Holds a Profiler's parts for as long as the Profiler lives.
class CoreFactory {
 public:
  CoreFactory() = default;
  virtual ~CoreFactory() = default;
  CoreFactory(const CoreFactory&) = delete;
  CoreFactory& operator=(const CoreFactory&) = delete;

  // Makes a core. `options` are final: the environment has been applied.
  [[nodiscard]] virtual std::unique_ptr<AbstractCore> Make(
      const ProfilerOptions& options) const = 0;
  // Applies the environment to `options` that code has not set. Reports values that are not
  // accepted on standard error.
  [[nodiscard]] virtual ProfilerOptions WithEnvironment(ProfilerOptions options) const = 0;
  // Writes one line to standard error.
  virtual void WriteLine(const std::string& line) const = 0;
};

// Makes the factory for the parts of `Traits`: each part is the given one, or is made from the
// options. Returns nullptr if memory runs out. Defined in runtime/control/core_factory.h; the
// library defines it for the default parts.
template <class Traits>
[[nodiscard]] std::unique_ptr<const CoreFactory> MakeCoreFactory();
template <class Traits>
[[nodiscard]] std::unique_ptr<const CoreFactory> MakeCoreFactoryOf(Parts<Traits> parts);

}  // namespace internal
}  // namespace strobe
