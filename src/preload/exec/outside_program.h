// OutsideProgram: a program that the process executes. If that loads no library, the command is
// asked to record it from outside (attach_request.h).
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace strobe::internal {

// The path of an executable file, as exec…p look for it. Signal-safe.
class ExecutedPath {
 public:
  // A handler may run on a small stack: what is behind longer paths is not found.
  static constexpr std::size_t kMaxBytes = 1024;

  // `name` itself if it has a slash, or is in no folder of PATH.
  explicit ExecutedPath(const char* name) noexcept;
  [[nodiscard]] const char* get() const { return path_; }

 private:
  const char* path_;
  std::array<char, kMaxBytes> found_;
};

// All functions keep errno. They are signal-safe, for a child of vfork, and no cancellation points.
// A call that cannot be answered does nothing: the program is then executed as if it were recorded.
class OutsideProgram {
 public:
  // How long a process waits for the command before it executes.
  static constexpr int kLongestAnswerMs = 100;

  // The program at `path`, which gets `environment`. One that loads a library, or whose environment
  // has no recording, is no such program: the other functions do nothing. The same if this
  // thread has another number of filters of system calls than the command had (call_filters.h).
  OutsideProgram(const char* path, char* const* environment) noexcept;
  ~OutsideProgram();
  OutsideProgram(const OutsideProgram&) = delete;
  OutsideProgram& operator=(const OutsideProgram&) = delete;

  // To be called by the thread that then executes the program.
  void AskBeforeExec() noexcept;
  // The program could not be executed.
  void SayExecFailed() noexcept;
  // A child runs the program already.
  void AskAfterSpawn(pid_t child) noexcept;

 private:
  std::string_view folder_;  // of the recording; empty: nothing is asked
  bool has_other_rights_ = false;
  int connection_ = -1;  // from which an exec closes it
};

}  // namespace strobe::internal
