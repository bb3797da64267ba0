// A plug-in that links a copy of Strobe of its own, for hosts_test.
#include "strobe/strobe.h"

// Whether a session of that copy could be begun. It leaves nothing behind, but for the files in
// `directory`.
extern "C" bool ProfilePlugin(const char* directory) {
  strobe::Profiler profiler({.exporter = {.directory = directory}});
  const auto registration = profiler.RegisterThread("plugin");
  const strobe::ScopedProfiler session(profiler);
  return registration.status().ok() && session.status().ok();
}
