// A whole profiler in the least program that has one: what handler_gate.py looks at.
#include <strobe/strobe.h>

int main() {
  strobe::Profiler profiler({.sampling = {.wall_frequency_hz = 10}});
  auto registration = profiler.RegisterThread("main");
  strobe::ScopedProfiler session(profiler);
}
