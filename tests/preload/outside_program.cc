// A program that knows nothing of Strobe, linked statically or dynamically. Each work takes 0.25 s
// by its thread's CPU clock, and says so with the form and the process:
// outside_program HOW [PATH ARGUMENT...] works and then, by HOW,
//   work     ends
//   fork     has a child, which works
//   threads  has worked in two threads
//   exec     executes PATH
//   spawn    starts PATH by posix_spawn
#include <spawn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string_view>
#include <thread>

#include "program_work.h"

namespace {

using strobe::testing::StatusOf;
using strobe::testing::ThreadCpuS;

volatile std::uint64_t sink = 0;

// FORM is "static" or "dynamic", and the name of the function says so, too.
__attribute__((noinline)) void WORK() {
  const double begin_s = ThreadCpuS();
  double now_s = begin_s;
  while (now_s < begin_s + 0.25) {
    for (int i = 0; i < 100'000; ++i) sink = sink + 1;
    now_s = ThreadCpuS();
  }
  std::printf(FORM " %d %.6f\n", static_cast<int>(getpid()), now_s - begin_s);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "work";
  if (how == "threads") {
    std::thread other(WORK);
    WORK();
    other.join();
    return 0;
  }
  WORK();
  if (how == "fork") {
    const pid_t child = fork();
    if (child != 0) return StatusOf(child);
    WORK();
    return 4;
  }
  if (argc > 2 && how == "exec") execv(argv[2], argv + 2);
  pid_t child = 0;
  if (argc > 2 && how == "spawn" &&
      posix_spawn(&child, argv[2], nullptr, nullptr, argv + 2, environ) == 0)
    return StatusOf(child);
  return 3;
}
