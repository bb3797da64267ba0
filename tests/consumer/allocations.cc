// A program outside this tree that links the functions in front of its allocator: what is live has
// to be in its profile.
#include <strobe/allocations/allocation_sampling.h>

#include <cstdio>
#include <memory>
#include <vector>

// Of 100 MB. The thread's first point was drawn with the interval before, which is 512 KiB in the
// mean: it is farther than 20 MB with a probability of 10^-17.
constexpr std::int64_t kSeenBytes = 80'000'000;

int main(int argc, char** argv) {
  strobe::ProfilerOptions options;
  options.exporter.directory = argc > 1 ? argv[1] : "profiles";
  strobe::BasicProfiler<strobe::AllocationTraits> profiler(options);
  const absl::Status started = profiler.Start();
  const strobe::AllocationSampling sampling(profiler, {.interval_bytes = 1 << 10});
  const std::vector<std::unique_ptr<char[]>> blocks = [] {
    std::vector<std::unique_ptr<char[]>> made;
    for (int i = 0; i < 1000; ++i) made.push_back(std::make_unique<char[]>(100'000));
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
  return blocks.size() == 1000 && live_bytes > kSeenBytes ? 0 : 1;
}
