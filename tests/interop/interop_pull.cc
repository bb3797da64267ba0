// Works, profiled, and serves its profiles until its standard input ends. Prints the server's URL.
// The server's options come from the environment.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <thread>

#include "strobe/http/pull_server.h"
#include "strobe/strobe.h"

namespace {

volatile std::uint64_t sink = 1;

[[gnu::noinline]] void WorkForPull(const std::atomic<bool>& is_ending) {
  while (!is_ending.load()) {
    for (int i = 0; i < 1000; ++i) sink = sink * 6364136223846793005 + 1;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  strobe::Profiler profiler({.exporter = {.directory = argv[1]}});
  strobe::ScopedProfiler session(profiler);
  std::atomic<bool> is_ending{false};
  std::thread worker([&] {
    const auto registration = profiler.RegisterThread("worker");
    WorkForPull(is_ending);
  });
  strobe::PullServer server(profiler);
  if (const absl::Status status = server.Start(); status.ok()) {
    std::printf("%s\n", server.url().c_str());
    std::fflush(stdout);
    while (std::getchar() != EOF) {
    }
  } else {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
  }
  is_ending = true;
  worker.join();
}
