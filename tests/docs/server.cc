// The server of the documents: two threads that serve requests, profiled if the environment asks.
//
//   server [REQUESTS]    serves so many, or without end
#include <strobe/strobe.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

static volatile std::uint64_t sink = 0;

// Stands for work: about a nanosecond a step.
static inline __attribute__((always_inline)) void Spend(std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) sink = sink * 31 + i;
}

__attribute__((noinline)) void Compress() { Spend(12'000'000); }

__attribute__((noinline)) void Render() { Spend(500'000); }

static void Serve(long request) {
  const strobe::ScopedLabels labels({{"endpoint", request % 2 == 0 ? "/pay" : "/list"}});
  const strobe::ScopedZone zone("request", {.slow_over_ns = 4'000'000});
  Render();
  if (request % 10 == 0) Compress();
}

int main(int argc, char** argv) {
  strobe::ProfilerFromEnvironment profiler("main");
  const bool is_endless = argc < 2;
  const long requests = is_endless ? std::numeric_limits<long>::max() : std::atol(argv[1]);
  std::printf("listening\n");
  std::fflush(stdout);

  std::atomic<long> next{0};
  std::vector<std::thread> workers;
  for (int i = 0; i < 2; ++i) {
    workers.emplace_back([&] {
      const auto registration = profiler.RegisterThread("worker");
      for (long request = next++; request < requests; request = next++) {
        Serve(request);
        if (is_endless) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
}
