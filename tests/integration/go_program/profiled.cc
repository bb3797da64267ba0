// The C++ part of the Go program. Ends the process where Go's runtime stands still, which only a
// thread outside of it can see.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <optional>

#include "strobe/strobe.h"

namespace {

constinit strobe::Profiler* profiler = nullptr;
thread_local std::optional<strobe::Registration> registration;

}  // namespace

extern "C" {

void StrobeTestBegin(double wall_hz) {
  profiler = new strobe::Profiler({.sampling = {.wall_frequency_hz = wall_hz}});
  const absl::Status status = profiler->Start();
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(3);
}
void StrobeTestRegister() { registration.emplace(profiler->RegisterThread("go")); }
void StrobeTestUnregister() { registration.reset(); }
int StrobeTestSignal() { return profiler->stats().signal_number; }
std::int64_t StrobeTestEnd() {
  static_cast<void>(profiler->Stop());
  const std::int64_t samples = static_cast<std::int64_t>(profiler->stats().samples);
  std::fprintf(stderr, "%s\n", profiler->Diagnose().c_str());
  return samples;
}

}  // extern "C"
