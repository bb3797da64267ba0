// ExceptionSampling: counts each exception that a program throws, by its type and stack.
//
// A program that uses it links strobe_exceptions_dep, and then has Strobe's own __cxa_throw: the
// function that the compiler calls for `throw`. It counts, and calls the one of the C++ runtime.
// Linux only, with libstdc++ as a shared library.
//
//   strobe::BasicProfiler<strobe::ExceptionTraits> profiler;
//   strobe::BasicScopedProfiler session(profiler);
//   strobe::ExceptionSampling sampling(profiler);
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/exceptions/exception_provider.h"
#include "strobe/own_parts.h"
#include "strobe/provider/event_target.h"

namespace strobe {

// The default parts, and exceptions.
struct ExceptionTraits : DefaultTraits {
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider, ExceptionProvider>;
};

// Of the process, since the last ExceptionSampling began.
struct ExceptionStats {
  // Thrown while no session ran. They are in no profile.
  std::int64_t untaken_exceptions = 0;
  // Of types beyond the limit of 512 in a process, with a mangled name of more than 1,024 bytes, or
  // for whose names there was no memory. A profile has them as "[types over limit]".
  std::int64_t exceptions_over_limit = 0;
};

namespace STROBE_HIDDEN internal {

ExceptionStats CollectExceptionStats();

// From now on each throw goes to `target`, which is not copied. FailedPrecondition if they go to
// another one.
absl::Status BeginExceptions(const EventTarget& target);
// From now on they go nowhere. Waits until no thread uses the target any more.
void EndExceptions();

// The leaf frames between the target's function and the function that throws: those two and
// __cxa_throw.
inline constexpr std::uint32_t kExceptionFrames = 3;

}  // namespace internal

// Counts the throws of all threads while the object lives. The profiler, of traits whose providers
// include ExceptionProvider, must outlive it, and counts while a session runs. One object at a time
// in a process: status() of another says so, and it does nothing.
//
// Each throw has one sample, with the label kExceptionLabel. The first throw of a type, and the
// first one under other labels of the thread, allocate memory.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class ExceptionSampling {
 public:
  template <class Traits>
  explicit ExceptionSampling(BasicProfiler<Traits>& profiler)
      : target_(internal::TargetOf<ExceptionProvider, internal::kExceptionFrames>(profiler)),
        status_(internal::BeginExceptions(target_)) {}
  ~ExceptionSampling() {
    if (status_.ok()) internal::EndExceptions();
  }
  ExceptionSampling(const ExceptionSampling&) = delete;
  ExceptionSampling& operator=(const ExceptionSampling&) = delete;

  // OK; FailedPrecondition if another object lives.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  [[nodiscard]] static ExceptionStats stats() { return internal::CollectExceptionStats(); }

 private:
  const internal::EventTarget target_;
  const absl::Status status_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
