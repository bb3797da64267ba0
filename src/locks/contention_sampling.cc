#include "strobe/locks/contention_sampling.h"

#include <cstdint>

#include "absl_mutexes.h"
#include "strobe/locks/profiled.h"
#include "strobe/provider/amount_sampler.h"
#include "wait_sink.h"

namespace strobe::internal {
namespace {

constinit WaitSink contentions;
constinit WaitSink conditions;

}  // namespace

bool IsSamplingContentions() noexcept { return contentions.is_open(); }

void NoteContention(std::int64_t delay_ns) noexcept { contentions.Note(delay_ns); }

bool IsSamplingConditions() noexcept { return conditions.is_open(); }

void NoteConditionWait(std::int64_t delay_ns) noexcept { conditions.Note(delay_ns); }

absl::Status BeginContentions(const EventTarget& target, const ContentionOptions& options) {
  if (options.interval_ns < 1 || options.interval_ns > kMaxSamplingInterval) {
    return absl::InvalidArgumentError(
        "ContentionOptions::interval_ns: expected a number from 1 to 2^40");
  }
  const bool is_first = contentions.Begin(
      target, options.interval_ns, [&options] { SetAbslMutexSampling(options.absl_mutexes); });
  return is_first ? absl::OkStatus()
                  : absl::FailedPreconditionError("contentions are sampled already");
}

void EndContentions() { contentions.Close(); }

void BeginConditions(const EventTarget& target, std::int64_t interval_ns) {
  static_cast<void>(conditions.Begin(target, interval_ns, [] {}));
}

void EndConditions() { conditions.Close(); }

ContentionStats CollectContentionStats() {
  const SampledAmounts untaken = contentions.untaken();
  return {.untaken_contentions = untaken.count,
          .untaken_delay_ns = untaken.total,
          .samples_absl_mutexes = IsSamplingAbslMutexes()};
}

}  // namespace strobe::internal
