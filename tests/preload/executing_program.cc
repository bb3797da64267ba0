// A program that knows nothing of Strobe, and executes itself with an environment of its own:
// executing_program HOW works, executes "executing_program end" by HOW, and that works, too.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "program_work.h"

namespace {

using strobe::testing::StatusOf;
using strobe::testing::ThreadCpuS;

volatile std::uint64_t sink = 0;

void SpinFor(double cpu_s) {
  const double end_s = ThreadCpuS() + cpu_s;
  while (ThreadCpuS() < end_s) {
    for (int i = 0; i < 100'000; ++i) sink = sink + 1;
  }
}
__attribute__((noinline)) void WorkBefore() {
  SpinFor(0.25);
  sink = sink + 1;
}
__attribute__((noinline)) void WorkAfter() {
  SpinFor(0.25);
  sink = sink + 2;
}

extern "C" char** environ;
std::array<char*, 2> variables{const_cast<char*>("OWN=1"), nullptr};

// By a call that takes the environment, or by one that takes that of the process.
int Execute(std::string_view how, const char* path) {
  std::array<char*, 4> arguments{const_cast<char*>("name"), const_cast<char*>("end"),
                                 const_cast<char*>("a b"), nullptr};
  char** const own = variables.data();
  if (how == "execve") return execve(path, arguments.data(), own);
  if (how == "execvpe") return execvpe(path, arguments.data(), own);
  if (how == "execle") return execle(path, "name", "end", "a b", nullptr, own);
  if (how == "fexecve") return fexecve(open(path, O_RDONLY | O_CLOEXEC), arguments.data(), own);
  pid_t child = 0;
  if (how == "posix_spawn" &&
      posix_spawn(&child, path, nullptr, nullptr, arguments.data(), own) == 0)
    return StatusOf(child);
  if (how == "posix_spawnp" &&
      posix_spawnp(&child, path, nullptr, nullptr, arguments.data(), own) == 0)
    return StatusOf(child);
  if (how == "vfork") {
    child = vfork();
    if (child == 0) {
      execve(path, arguments.data(), own);
      _exit(1);
    }
    return StatusOf(child);
  }
  environ = own;
  if (how == "execv") return execv(path, arguments.data());
  if (how == "execvp") return execvp(path, arguments.data());
  if (how == "execl") return execl(path, "name", "end", "a b", nullptr);
  if (how == "execlp") return execlp(path, "name", "end", "a b", nullptr);
  return 1;
}

// What is not the recording's.
void SayEnvironment() {
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text(*variable);
    if (!text.starts_with("STROBE_") && !text.starts_with("LD_PRELOAD=")) std::puts(*variable);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  if (how == "end") {
    std::printf("%s %s %d\n", argv[0], argv[2], argc);
    SayEnvironment();
    WorkAfter();
    return 5;
  }
  WorkBefore();
  std::fflush(stdout);
  if (how != "none") return Execute(how, "/proc/self/exe");
  // What cannot be executed is as if nothing had been.
  for (const char* const failing : {"execve", "execvp", "execl", "fexecve", "posix_spawn"}) {
    const int result = Execute(failing, "/no/such/program");
    std::printf("%s: %d %d\n", failing, result, result == -1 ? errno : 0);
  }
  WorkAfter();
  return 6;
}
