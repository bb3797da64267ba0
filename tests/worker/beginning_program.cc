// Asks for a worker, and prints what becomes of it. With $STROBE_TEST_RUNS its main does not say
// that it can be one, and adds a byte to that file each time it runs.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "strobe/profiler.h"
#include "strobe/worker/run_worker.h"

int main(int argc, char** argv) {
  if (const char* const runs = std::getenv("STROBE_TEST_RUNS"); runs != nullptr) {
    std::FILE* const file = std::fopen(runs, "ab");
    if (file == nullptr) return 2;
    std::fputc('x', file);
    std::fclose(file);
  } else {
    strobe::RunWorkerIfAsked(argc, argv);
  }
  strobe::Profiler profiler(
      {.exporter = {.directory = argv[argc - 1]}, .worker = {.enabled = true}});
  std::fprintf(stderr, "%s\n", profiler.Start().ToString().c_str());
  return profiler.Stop().ok() ? 0 : 3;
}
