// A program outside this tree that links the functions in front of its allocator: what is live has
// to be in its profile.
#include <strobe/allocations/allocation_sampling.h>

#include <cstdio>
#include <memory>
#include <vector>

int main(int argc, char** argv) {
  strobe::ProfilerOptions options;
  options.exporter.directory = argc > 1 ? argv[1] : "profiles";
  strobe::BasicProfiler<strobe::AllocationTraits> profiler(options);
  const absl::Status started = profiler.Start();
  const strobe::AllocationSampling sampling(profiler, {.interval_bytes = 1 << 10});
  const std::vector<std::unique_ptr<char[]>> blocks = [] {
    std::vector<std::unique_ptr<char[]>> made;
    // Few enough for the ring, also where the collector gets no turn meanwhile.
    for (int i = 0; i < 100; ++i) made.push_back(std::make_unique<char[]>(100'000));
    return made;
  }();
  const absl::StatusOr<strobe::Profile> profile =
      profiler.Record({.duration = std::chrono::milliseconds(1), .value_types = {"inuse_space"}});
  std::int64_t live_bytes = 0;
  if (profile.ok()) {
    for (std::size_t i = 0; i < profile->samples.size(); ++i) live_bytes += profile->Values(i)[0];
  }
  std::printf("start: %s\nsampling: %s\nlive: %lld\n", started.ToString().c_str(),
              sampling.status().ToString().c_str(), static_cast<long long>(live_bytes));
  // Until the collector has this code's unwind table, a block's weight rides on a later sample,
  // which need not be of a live block.
  return blocks.size() == 100 && live_bytes > 1'000'000 ? 0 : 1;
}
