// Zones: profiles say in which named region of the program the time was used, whatever functions
// the region called. With collector.zone_frames, a flame graph begins with the regions.
#include <strobe/strobe.h>

#include <cstdint>
#include <cstdio>

namespace {

volatile std::uint64_t sink = 0;

void Work() {
  for (std::uint64_t i = 0; i < 300'000'000; ++i) sink = sink * 31 + i;
}

void Serve() {
  // Samples of a request that takes longer than 50 ms have the label slow=true.
  strobe::ScopedZone request("request", {.slow_over_ns = 50'000'000});
  {
    strobe::ScopedZone parse("parse");  // in its samples, the path is "request;parse"
    Work();
  }
  Work();
}

}  // namespace

int main() {
  // The program is short, so the budget must not make its samples few. With the times of samples,
  // the Firefox Profiler's timeline shows the zones, too.
  strobe::Profiler profiler(
      {.sampling = {.max_overhead = 1, .timestamps = true}, .collector = {.zone_frames = true}});
  auto registration = profiler.RegisterThread("main");
  strobe::ScopedProfiler session(profiler);

  Serve();
  strobe::ScopedZone reply("reply");
  Work();
  std::printf("labels of main: %zu\n", strobe::CurrentLabels().set().labels().size());
}
