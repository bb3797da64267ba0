#include "strobe/runtime/session/profile_maker.h"

#include <algorithm>

namespace strobe::internal {
namespace {

void Subtract(const OutputStats& before, OutputStats& output) {
  output.exports -= before.exports;
  output.exports_failed -= before.exports_failed;
  output.exports_dropped -= before.exports_dropped;
  for (std::size_t reason = 0; reason < output.drops.size(); ++reason)
    output.drops[reason] -= before.drops[reason];
  output.amount_dropped -= before.amount_dropped;
  output.delivered -= before.delivered;
  output.spool.found -= before.spool.found;
  output.spool.left -= before.spool.left;
}

}  // namespace

Stats StatsBetween(const Stats& earlier, const Stats& later) {
  Stats result = later;
  result.threads_ended -= earlier.threads_ended;
  result.threads_refused -= earlier.threads_refused;
  result.samples -= earlier.samples;
  for (std::size_t i = 0; i < result.drops.size(); ++i) result.drops[i] -= earlier.drops[i];
  for (std::size_t i = 0; i < result.stack_ends.size(); ++i)
    result.stack_ends[i] -= earlier.stack_ends[i];
  result.signals_foreign -= earlier.signals_foreign;
  result.signals_stale -= earlier.signals_stale;
  result.handler_replaced -= earlier.handler_replaced;
  result.handler_time_ns -= earlier.handler_time_ns;
  result.drains -= earlier.drains;
  result.collector_cpu_ns -= earlier.collector_cpu_ns;
  result.process_cpu_ns -= earlier.process_cpu_ns;
  result.stacks_overflowed -= earlier.stacks_overflowed;
  result.labels_overflowed -= earlier.labels_overflowed;
  result.moments_dropped -= earlier.moments_dropped;
  result.spans_overflowed -= earlier.spans_overflowed;
  result.threads_unlisted -= earlier.threads_unlisted;
  result.dumps -= earlier.dumps;
  result.dumps_failed -= earlier.dumps_failed;
  result.dumps_skipped -= earlier.dumps_skipped;
  result.stacks_deferred -= earlier.stacks_deferred;
  result.module_refreshes -= earlier.module_refreshes;
  result.waits_abandoned -= earlier.waits_abandoned;
  result.waits_walked -= earlier.waits_walked;
  result.waits_interrupted -= earlier.waits_interrupted;
  result.waits_hidden -= earlier.waits_hidden;
  result.polls_put_off -= earlier.polls_put_off;
  result.instants -= earlier.instants;
  result.exports -= earlier.exports;
  result.exports_failed -= earlier.exports_failed;
  result.exports_dropped -= earlier.exports_dropped;
  result.amount_dropped -= earlier.amount_dropped;
  for (std::size_t i = 0; i < std::min(earlier.outputs.size(), result.outputs.size()); ++i) {
    Subtract(earlier.outputs[i], result.outputs[i]);
  }
  result.periods_extended -= earlier.periods_extended;
  result.out_of_memory -= earlier.out_of_memory;
  result.measured_samples -= earlier.measured_samples;
  result.measured_ns -= earlier.measured_ns;
  result.measured_rate_hz = result.measured_ns > 0
                                ? static_cast<double>(result.measured_samples) * 1e9 /
                                      static_cast<double>(result.measured_ns)
                                : 0;
  return result;
}

}  // namespace strobe::internal
