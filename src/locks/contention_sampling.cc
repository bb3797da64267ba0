#include "strobe/locks/contention_sampling.h"

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "absl_mutexes.h"
#include "strobe/locks/profiled.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/process_sink.h"

namespace strobe::internal {
namespace {

constinit ProcessSink sink;
constinit std::atomic<std::int64_t> interval_ns{ContentionOptions().interval_ns};

}  // namespace

bool IsSamplingContentions() noexcept { return sink.is_open(); }

void NoteContention(std::int64_t delay_ns) noexcept {
  if (!sink.is_open()) return;
  RandomSource random(NewSeed());
  // A coarse clock may see no time pass.
  const auto delay = static_cast<std::uint64_t>(std::max<std::int64_t>(delay_ns, 1));
  const SampledAmounts amounts =
      SampleOne(delay, interval_ns.load(std::memory_order_relaxed), random);
  if (amounts.count == 0) return;
  const ProcessSink::Use use(sink);
  use.Record(amounts);
}

absl::Status BeginContentions(const EventTarget& target, const ContentionOptions& options) {
  if (options.interval_ns < 1 || options.interval_ns > kMaxSamplingInterval) {
    return absl::InvalidArgumentError(
        "ContentionOptions::interval_ns: expected a number from 1 to 2^40");
  }
  const bool is_first = sink.Open(target, [&options] {
    interval_ns.store(options.interval_ns, std::memory_order_relaxed);
    SetAbslMutexSampling(options.absl_mutexes);
  });
  return is_first ? absl::OkStatus()
                  : absl::FailedPreconditionError("contentions are sampled already");
}

void EndContentions() { sink.Close(); }

ContentionStats CollectContentionStats() {
  const SampledAmounts untaken = sink.untaken();
  return {.untaken_contentions = untaken.count,
          .untaken_delay_ns = untaken.total,
          .samples_absl_mutexes = IsSamplingAbslMutexes()};
}

}  // namespace strobe::internal
