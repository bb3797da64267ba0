// Periods to export, for tests of what waits for outputs.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "strobe/aggregate/aggregator.h"
#include "strobe/runtime/session/export_queue.h"

namespace strobe::internal {

// A period with one stack of one thread: 1, 20 and 300 of three value types. The second is the
// default one.
inline std::unique_ptr<ExportJob> Job(std::uint64_t sequence) {
  Aggregator aggregator(3, 1 << 20);
  const std::uint32_t key = aggregator.AddThread(1, "thread");
  const std::vector<Address> stack{0x401000};
  aggregator.Add(key, {.generation = 1, .leaf_first = stack},
                 std::vector<std::int64_t>{1, 20, 300});
  auto job = std::make_unique<ExportJob>();
  job->samples = aggregator.Take();
  job->profile.value_types = {{"a", "count"}, {"b", "count"}, {"c", "count"}};
  job->profile.default_value_type = 1;
  job->profile.sequence = sequence;
  return job;
}

// The same as a window of what was kept.
inline std::unique_ptr<ExportJob> WindowJob(std::uint64_t sequence) {
  std::unique_ptr<ExportJob> job = Job(sequence);
  job->profile.window = "the last 1.0 s";
  job->outcome = std::make_shared<WindowOutcome>();
  return job;
}

}  // namespace strobe::internal
