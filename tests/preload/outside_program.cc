// A program that knows nothing of Strobe, linked statically or dynamically. Each work takes 0.25 s
// by its thread's CPU clock, and says so with the form and the process:
// outside_program HOW [PATH ARGUMENT...] works and then, by HOW,
//   read     has not worked, and reads its input to the end
//   work     ends
//   fork     has a child, which works
//   threads  has worked in two threads
//   exec     executes PATH
//   other    executes PATH in another thread
//   again    executes PATH, and if that fails, the first argument
//   filter   executes PATH where a filter of system calls ends a process that opens a socket
//   spawn    starts PATH by posix_spawn
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
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

// True if the filter is in force.
bool ForbidSockets() {
  std::array<sock_filter, 5> steps{{{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                                    {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_socket},
                                    {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_getxattr},
                                    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
                                    {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}}};
  const sock_fprog program{steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
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
  if (how == "read") {
    std::array<char, 16> bytes{};
    while (read(STDIN_FILENO, bytes.data(), bytes.size()) > 0) continue;
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
  if (argc > 2 && how == "other") std::thread([argv] { execv(argv[2], argv + 2); }).join();
  if (argc > 3 && how == "again" && execv(argv[2], argv + 2) != 0) execv(argv[3], argv + 3);
  if (argc > 2 && how == "filter" && ForbidSockets()) execv(argv[2], argv + 2);
  pid_t child = 0;
  if (argc > 2 && how == "spawn" &&
      posix_spawn(&child, argv[2], nullptr, nullptr, argv + 2, environ) == 0)
    return StatusOf(child);
  return 3;
}
