// ContentionSampling: samples the waits for locks of a program: for Profiled mutexes (profiled.h),
// and for all mutexes of Abseil. A program that uses it links strobe_locks_dep.
//
//   strobe::BasicProfiler<strobe::ContentionTraits> profiler;
//   strobe::BasicScopedProfiler session(profiler);
//   strobe::ContentionSampling sampling(profiler);
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/locks/condition_provider.h"
#include "strobe/locks/contention_provider.h"
#include "strobe/own_parts.h"
#include "strobe/provider/event_target.h"

namespace strobe {

// The default parts, and contentions.
struct ContentionTraits : DefaultTraits {
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider, ContentionProvider>;
};

// The same, and waits for conditions: for a program, or a library that is preloaded, that calls
// NoteConditionWait.
struct LockTraits : DefaultTraits {
  using Providers = ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider,
                                 ContentionProvider, ConditionProvider>;
};

struct ContentionOptions {
  // The mean distance of sampled points on the axis of delays, in nanoseconds, from 1 to 2^40: a
  // thread that always waits has a sample each millisecond. A wait of 1 ms is sampled with the
  // probability 63 %, one of 10 us with 1 %, and then counts for a hundred. See amount_sampler.h.
  std::int64_t interval_ns = 1'000'000;
  // False in a program that calls absl::RegisterMutexProfiler itself: Abseil has room for one hook,
  // and checks that in some builds. Abseil keeps the hook for the life of the process, so the image
  // that contains this library must stay loaded.
  bool absl_mutexes = true;
};

// Of the process, since the last ContentionSampling began.
struct ContentionStats {
  // Estimates of the waits while no session ran. They are in no profile.
  std::int64_t untaken_contentions = 0;
  std::int64_t untaken_delay_ns = 0;
  // Whether waits for mutexes of Abseil are sampled. False if the option is, if the program has
  // another hook, or if the rate of Abseil's clock could not be measured.
  bool samples_absl_mutexes = false;
};

namespace STROBE_HIDDEN internal {

ContentionStats CollectContentionStats();

// From now on samples go to `target`, which is not copied. FailedPrecondition if they go to another
// one.
absl::Status BeginContentions(const EventTarget& target, const ContentionOptions& options);
// From now on they go nowhere. Waits until no thread uses the target any more.
void EndContentions();

// The same for waits for conditions, whose contentions go to the same profiler.
void BeginConditions(const EventTarget& target, std::int64_t interval_ns);
void EndConditions();
// True between these two.
[[nodiscard]] bool IsSamplingConditions() noexcept;
// Samples a wait for a condition, as NoteContention does one for a lock.
[[gnu::noinline]] void NoteConditionWait(std::int64_t delay_ns) noexcept;

// The leaf frames between the target's function and the function that asks for the lock: those two
// and one in between.
inline constexpr std::uint32_t kContentionFrames = 3;

// Empty if the profiler's providers do not include ConditionProvider.
template <class Traits>
EventTarget ConditionTargetOf(BasicProfiler<Traits>& profiler) {
  if constexpr (Traits::Providers::template kHas<ConditionProvider>)
    return TargetOf<ConditionProvider, kContentionFrames>(profiler);
  return {};
}

}  // namespace internal

// Samples the waits of all threads while the object lives. The profiler, of traits whose providers
// include ContentionProvider, must outlive it, and counts samples while a session runs. One object
// at a time in a process: status() of another says so, and it does nothing.
//
// The first object with the option `absl_mutexes` in a process measures the rate of Abseil's clock
// in about 10 ms, with a second thread.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class ContentionSampling {
 public:
  template <class Traits>
  explicit ContentionSampling(BasicProfiler<Traits>& profiler,
                              const ContentionOptions& options = {})
      : target_(internal::TargetOf<ContentionProvider, internal::kContentionFrames>(profiler)),
        condition_target_(internal::ConditionTargetOf(profiler)),
        status_(internal::BeginContentions(target_, options)) {
    if (has_conditions()) internal::BeginConditions(condition_target_, options.interval_ns);
  }
  ~ContentionSampling() {
    if (has_conditions()) internal::EndConditions();
    if (status_.ok()) internal::EndContentions();
  }
  ContentionSampling(const ContentionSampling&) = delete;
  ContentionSampling& operator=(const ContentionSampling&) = delete;

  // OK; InvalidArgument if an option is wrong; FailedPrecondition if another object lives.
  [[nodiscard]] const absl::Status& status() const { return status_; }

  [[nodiscard]] static ContentionStats stats() { return internal::CollectContentionStats(); }

 private:
  [[nodiscard]] bool has_conditions() const {
    return status_.ok() && condition_target_.record != nullptr;
  }

  const internal::EventTarget target_;
  const internal::EventTarget condition_target_;
  const absl::Status status_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
