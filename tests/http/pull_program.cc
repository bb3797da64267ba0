// A program with a pull server, for hostile_clients.py. Prints the server's URL. At the end of its
// standard input it stops the server, and prints how many milliseconds that took.
#include <chrono>
#include <cstdio>

#include "strobe/http/pull_server.h"
#include "strobe/strobe.h"

int main() {
  strobe::Profiler profiler;
  const auto registration = profiler.RegisterThread("main");
  const strobe::ScopedProfiler session(profiler);
  strobe::PullServer server(profiler);
  if (const absl::Status status = server.Start(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("%s\n", server.url().c_str());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  const auto begin = std::chrono::steady_clock::now();
  server.Stop();
  const auto taken = std::chrono::steady_clock::now() - begin;
  std::printf("%lld\n", static_cast<long long>(
                            std::chrono::duration_cast<std::chrono::milliseconds>(taken).count()));
}
