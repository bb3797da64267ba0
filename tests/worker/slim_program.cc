// A program that links no exporter: its worker is the command `strobe`.
//
//   STROBE_WORKER_COMMAND=strobe slim_program DIRECTORY
#include <cstdint>
#include <cstdio>

#include "strobe/clock/system_clock.h"
#include "strobe/worker/remote_profiler.h"

namespace {

// About half a second.
void Work() {
  const std::int64_t end_ns = strobe::SystemClock().MonotonicNs() + 500'000'000;
  volatile std::uint64_t value = 1;
  while (strobe::SystemClock().MonotonicNs() < end_ns) {
    for (int i = 0; i < 10'000; ++i) value = value * 6364136223846793005 + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  strobe::RemoteProfiler profiler({.exporter = {.directory = argv[1]}});
  const strobe::Registration registration = profiler.RegisterThread("main");
  const strobe::ScopedRemoteProfiler session(profiler);
  if (!session.status().ok()) return 3;
  Work();
  return 0;
}
