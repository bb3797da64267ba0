// A program with a profiler, with a worker if STROBE_WORKER says so, and with a pull server:
//
//   linked_program ACTS SEED
//
// Prints last what it can read of its session's stop.
#include <cstdio>
#include <cstdlib>

#include "programs_files.h"
#include "short_threads.h"
#include "strobe/http/pull_server.h"
#include "strobe/strobe.h"
#include "strobe/worker/run_worker.h"

int main(int argc, char** argv) {
  strobe::RunWorkerIfAsked(argc, argv);
  if (argc != 3) return 2;
  strobe::Profiler profiler;
  const auto registration = profiler.RegisterThread("main");
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::printf("%s\n", std::string(status.message()).c_str());
    return 2;
  }
  strobe::PullServer server(profiler);
  if (!server.Start().ok()) return 3;
  int status = 0;
  {
    const strobe::testing::ShortThreads threads([&] { return profiler.RegisterThread("short"); });
    int acts = 0;
    status = strobe::testing::RunProgramsFiles(std::atoi(argv[1]),
                                               std::strtoull(argv[2], nullptr, 10), [&] {
                                                 if (++acts % 1000 == 0)
                                                   static_cast<void>(profiler.Flush());
                                               });
  }
  server.Stop();
  std::printf("stop: %s\n", std::string(profiler.Stop().message()).c_str());
  return status;
}
