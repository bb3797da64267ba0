// Calls by which the program executes another one, in its own process or in a child. The other one
// is recorded whatever environment it gets, also if it loads no library, and what this one has used
// until then is exported.
#include <errno.h>
#include <spawn.h>
#include <stdarg.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

#include "../next.h"
#include "../process_session.h"
#include "outside_program.h"
#include "recorded_environment.h"

namespace {

using strobe::internal::BeginAfterExec;
using strobe::internal::EndBeforeExec;
using strobe::internal::ExecutedPath;
using strobe::internal::Next;
using strobe::internal::OutsideProgram;
using strobe::internal::WithRecordedEnvironment;

using Spawn = int(pid_t*, const char*, const posix_spawn_file_actions_t*, const posix_spawnattr_t*,
                  char* const*, char* const*);
constinit Next<int(const char*, char* const*, char* const*)> next_execute{"execve"};
constinit Next<int(const char*, char* const*, char* const*)> next_execute_found{"execvpe"};
constinit Next<int(int, char* const*, char* const*)> next_execute_file{"fexecve"};
constinit Next<Spawn> next_spawn{"posix_spawn", "GLIBC_2.15"};
constinit Next<Spawn> next_spawn_found{"posix_spawnp", "GLIBC_2.15"};

// A signal's handler, and a child of vfork, may execute: they must look nothing up.
__attribute__((constructor(65535))) void Find() {
  static_cast<void>(*next_execute);
  static_cast<void>(*next_execute_found);
  static_cast<void>(*next_execute_file);
  static_cast<void>(*next_spawn);
  static_cast<void>(*next_spawn_found);
}

// call(environment) executes the file at `path`. It returns only if it has failed.
template <class Call>
int Execute(const char* path, char* const* environment, const Call& call) {
  const bool has_ended = EndBeforeExec();
  const int result = WithRecordedEnvironment(environment, [&](char* const* recorded) {
    OutsideProgram outside(path, recorded);
    outside.AskBeforeExec();
    const int failed = call(recorded);
    outside.SayExecFailed();
    return failed;
  });
  if (has_ended) BeginAfterExec();
  return result;
}

// call(child, environment) starts a child that executes the file at `path`.
template <class Call>
int SpawnPath(const char* path, pid_t* child, char* const* environment, const Call& call) {
  return WithRecordedEnvironment(environment, [&](char* const* recorded) {
    OutsideProgram outside(path, recorded);
    pid_t own = 0;
    const int error = call(child == nullptr ? &own : child, recorded);
    if (error == 0) outside.AskAfterSpawn(child == nullptr ? own : *child);
    return error;
  });
}

// The arguments from `first` to nullptr, as an array, which call(arguments, rest) gets: `rest` is
// what comes behind them.
template <class Call>
int WithArguments(const char* first, va_list rest, const Call& call) {
  va_list counted;
  va_copy(counted, rest);
  std::size_t count = first == nullptr ? 0 : 1;
  while (first != nullptr && va_arg(counted, const char*) != nullptr) ++count;
  va_end(counted);
  auto** const arguments = static_cast<char**>(__builtin_alloca((count + 1) * sizeof(char*)));
  arguments[0] = const_cast<char*>(first);
  for (std::size_t i = 1; i <= count; ++i) arguments[i] = va_arg(rest, char*);
  return call(arguments, rest);
}

// "/proc/self/fd/7".
std::array<char, 32> PathOf(int file) {
  constexpr std::string_view kFiles = "/proc/self/fd/";
  std::array<char, 32> path{};
  std::to_chars(std::ranges::copy(kFiles, path.begin()).out, path.end() - 1, file);
  return path;
}

int ExecutePath(const char* path, char* const* arguments, char* const* environment) {
  return Execute(path, environment,
                 [=](char* const* recorded) { return (*next_execute)(path, arguments, recorded); });
}
int ExecuteFound(const char* name, char* const* arguments, char* const* environment) {
  const ExecutedPath path(name);
  return Execute(path.get(), environment, [=](char* const* recorded) {
    return (*next_execute_found)(name, arguments, recorded);
  });
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int execve(const char* path, char* const* arguments, char* const* environment) noexcept {
  return ExecutePath(path, arguments, environment);
}
int execv(const char* path, char* const* arguments) noexcept {
  return ExecutePath(path, arguments, environ);
}
int execvp(const char* name, char* const* arguments) noexcept {
  return ExecuteFound(name, arguments, environ);
}
int execvpe(const char* name, char* const* arguments, char* const* environment) noexcept {
  return ExecuteFound(name, arguments, environment);
}
int fexecve(int file, char* const* arguments, char* const* environment) noexcept {
  return Execute(PathOf(file).data(), environment, [=](char* const* recorded) {
    return (*next_execute_file)(file, arguments, recorded);
  });
}

int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = WithArguments(first, rest, [=](char** arguments, va_list /*rest*/) {
    return ExecutePath(path, arguments, environ);
  });
  va_end(rest);
  return result;
}
int execlp(const char* name, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = WithArguments(first, rest, [=](char** arguments, va_list /*rest*/) {
    return ExecuteFound(name, arguments, environ);
  });
  va_end(rest);
  return result;
}
int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const int result = WithArguments(first, rest, [=](char** arguments, va_list behind) {
    return ExecutePath(path, arguments, va_arg(behind, char* const*));
  });
  va_end(rest);
  return result;
}

int posix_spawn(pid_t* child, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const* arguments,
                char* const* environment) {
  return SpawnPath(path, child, environment, [=](pid_t* started, char* const* recorded) {
    return (*next_spawn)(started, path, actions, attributes, arguments, recorded);
  });
}
int posix_spawnp(pid_t* child, const char* name, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const* arguments,
                 char* const* environment) {
  const ExecutedPath path(name);
  return SpawnPath(path.get(), child, environment, [=](pid_t* started, char* const* recorded) {
    return (*next_spawn_found)(started, name, actions, attributes, arguments, recorded);
  });
}

}  // extern "C"
#pragma GCC visibility pop
