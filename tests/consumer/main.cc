// A program that depends on Strobe: prints whether Start worked, or why not.
#include <strobe/strobe.h>

#include <cstdio>
#include <string>

int main(int, char** arguments) {
  strobe::Profiler profiler({.exporter = {.directory = std::string(arguments[1])}});
  auto registration = profiler.RegisterThread("main");
  const absl::Status status = profiler.Start();
  std::printf("start: %s\n", status.ToString().c_str());
  if (!status.ok()) return 0;
  volatile unsigned long sum = 0;
  while (profiler.stats().samples < 5) {
    for (unsigned long i = 0; i < 1000000; ++i) sum = sum + i;
  }
  std::printf("stop: %s\n", profiler.Stop().ToString().c_str());
}
