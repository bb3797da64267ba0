// AbstractCore: all that a Profiler asks of its core, and CoreFactory, which makes one. Behind them
// a program that keeps the default parts compiles none of these: they are compiled in the library.
#pragma once

#include <memory>
#include <string>
#include <string_view>

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

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

class AbstractCore : public RegistrationOwner {
 public:
  AbstractCore() = default;
  virtual ~AbstractCore() = default;
  AbstractCore(const AbstractCore&) = delete;
  AbstractCore& operator=(const AbstractCore&) = delete;

  // Whether it was made in this process. In a fork's child only registrations that end still touch
  // the parent's core.
  [[nodiscard]] virtual bool IsOfThisProcess() const = 0;
  virtual Registration RegisterThread(std::string_view name) = 0;
  virtual CodeRegistration RegisterCode(const GeneratedCode& code) = 0;
  virtual absl::Status Start() = 0;
  virtual absl::Status Stop() = 0;
  virtual absl::Status Flush() = 0;
  virtual absl::StatusOr<Profile> Record(const RecordingOptions& options) = 0;
  // Signal-safe. `registers` are those of a function of the calling thread that has not returned.
  virtual bool CaptureHere(const EventSample& event, const NativeRegisters* registers) noexcept = 0;
  virtual Stats GetStats() = 0;
  virtual std::string Diagnose() = 0;
  // The Profiler goes. Ends the session; the object goes too, at once or with the last of its
  // registrations.
  virtual void Retire() = 0;
};

// What a Profiler's parts are, for as long as the Profiler lives.
class CoreFactory {
 public:
  CoreFactory() = default;
  virtual ~CoreFactory() = default;
  CoreFactory(const CoreFactory&) = delete;
  CoreFactory& operator=(const CoreFactory&) = delete;

  // `options` as they are to be.
  [[nodiscard]] virtual std::unique_ptr<AbstractCore> Make(
      const ProfilerOptions& options) const = 0;
  // `options` as code set them, and with what the environment adds. What it cannot use, it says on
  // standard error.
  [[nodiscard]] virtual ProfilerOptions WithEnvironment(ProfilerOptions options) const = 0;
  // One line on standard error.
  virtual void WriteLine(const std::string& line) const = 0;
};

// For the parts of `Traits`, each as it is given or else made from the options; nullptr where
// memory runs out. Defined in runtime/core_factory.h, and for the default parts in the library.
template <class Traits>
[[nodiscard]] std::unique_ptr<const CoreFactory> MakeCoreFactory();
template <class Traits>
[[nodiscard]] std::unique_ptr<const CoreFactory> MakeCoreFactory(Parts<Traits> parts);

}  // namespace strobe::internal
STROBE_HIDDEN_END
