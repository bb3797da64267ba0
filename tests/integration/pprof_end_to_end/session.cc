// A program with a real session: session DIRECTORY leaves profiles there, and prints what its
// threads' own clocks say, a line each: "<thread> <name of its busiest function> <least CPU ns>
// <most CPU ns> <least wall ns> <most wall ns>".
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>

#include "../collecting_exporter.h"

// As a user's program has them: a namespace of its own kind, a template, a member. Each keeps its
// state on the stack, since g++ leaves the frame pointer out of a leaf function that uses none.
namespace strobe::testing {

__attribute__((noinline)) std::uint64_t Mix(std::uint64_t value) {
  volatile std::uint64_t state = value;
  for (int i = 0; i < 100'000; ++i) state = state * 6364136223846793005 + 1;
  return state;
}

template <class T>
__attribute__((noinline)) T Compress(T value) {
  volatile T state = value;
  for (int i = 0; i < 100'000; ++i) state = state ^ (state << 7) ^ (state >> 9);
  return state;
}

// The C library of many systems keeps no frame pointers, so its caller is skipped: Block
// is there to be that one.
class Waiter {
 public:
  Waiter() { is_open_ = pipe(pipe_) == 0; }
  ~Waiter() {
    close(pipe_[0]);
    End();
  }
  __attribute__((noinline)) void WaitForEnd() {
    Block();
    asm volatile("");
  }
  void End() {
    if (std::exchange(is_open_, false)) close(pipe_[1]);
  }

 private:
  __attribute__((noinline)) void Block() {
    char byte = 0;
    while (read(pipe_[0], &byte, 1) > 0) {
    }
  }

  int pipe_[2] = {-1, -1};
  bool is_open_ = false;
};

volatile std::uint64_t result_sink;

template <class Body>
void RunThread(Profiler& profiler, const char* name, const char* function, const Body& body) {
  const std::int64_t outer_wall = MonotonicNs();
  const std::int64_t outer_cpu = ThreadCpuNs();
  std::int64_t least_cpu = 0;
  std::int64_t least_wall = 0;
  {
    const Registration registration = profiler.RegisterThread(name);
    const std::int64_t inner_cpu = ThreadCpuNs();
    const std::int64_t inner_wall = MonotonicNs();
    body();
    least_cpu = ThreadCpuNs() - inner_cpu;
    least_wall = MonotonicNs() - inner_wall;
  }
  const std::int64_t most_cpu = ThreadCpuNs() - outer_cpu;
  const std::int64_t most_wall = MonotonicNs() - outer_wall;
  std::printf("%s %s %lld %lld %lld %lld\n", name, function, static_cast<long long>(least_cpu),
              static_cast<long long>(most_cpu), static_cast<long long>(least_wall),
              static_cast<long long>(most_wall));
}

template <class Step>
void Work(std::int64_t cpu_ns, const Step& step) {
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  std::uint64_t value = 1;
  while (ThreadCpuNs() < end_ns) value = step(value);
  result_sink = value;
}

int RunSession(const std::string& directory) {
  Profiler profiler({.sampling = {.wall_frequency_hz = 50}, .exporter = {.directory = directory}});
  const ScopedProfiler session(profiler);
  if (!session.status().ok()) {
    std::fprintf(stderr, "session: %s\n", session.status().ToString().c_str());
    return 1;
  }
  Waiter waiter;
  std::thread waiting(
      [&] { RunThread(profiler, "waiting", "Waiter::WaitForEnd", [&] { waiter.WaitForEnd(); }); });
  std::thread mixing([&] { RunThread(profiler, "mixing", "Mix", [] { Work(600'000'000, Mix); }); });
  std::thread compressing([&] {
    RunThread(profiler, "compressing", "Compress",
              [] { Work(300'000'000, Compress<std::uint64_t>); });
  });
  compressing.join();
  const bool is_flushed = profiler.Flush().ok();  // a second file
  mixing.join();
  waiter.End();
  waiting.join();
  return is_flushed ? 0 : 1;
}

}  // namespace strobe::testing

int main(int argc, char** argv) { return argc == 2 ? strobe::testing::RunSession(argv[1]) : 2; }
