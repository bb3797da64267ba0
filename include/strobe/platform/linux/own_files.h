// Files that the program cannot reach. Each number of the program's files is the program's: a shell
// takes the lowest by `exec 3>`, and finds them taken if another thread has just opened a file. And
// a library that opens files by itself knows only their numbers, so it would use and close what the
// program has put in their places.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

namespace strobe::internal {

// Gives the calling thread, and those that it begins from now on, a table of files of their own.
// Its three standard files are /dev/null, but the program's in a build with a sanitizer, which
// writes there; it has no other file of the program. What the thread opens, no other thread can
// close or replace, and no fork's child of another thread inherits. Call it only on a thread of the
// profiler, before it opens a file. False, and nothing has changed, under a filter of system calls,
// which may not expect this, and in a build with ThreadSanitizer.
bool TakeOwnFiles();

// Whether the thread has the files of the calling one. True where the system does not tell.
bool SharesFiles(std::uint64_t thread_id);
// Whether the calling thread has the program's files: those of its first thread, unless that has
// ended. True where the system does not tell.
bool HasProgramFiles();

// The program's files, for a thread of the profiler that has files of its own: a thread that shares
// the program's. It ends with the last of those that reach the program's files by it.
class ProgramFiles;

// Runs `body` on a thread that has files of its own, and waits for it. What body begins by
// LinuxPlatform::RunOnOwnThread shares these files. Where the calling thread has files of its own
// already, that thread runs body. Where the system refuses a thread or such files, body has the
// program's. It throws nothing.
void WithOwnFiles(const std::function<void()>& body);

// Runs `act` where the program's files are: on the calling thread, or, if that has been given files
// of its own by WithOwnFiles, on another, for which it waits. `act` throws nothing.
void WithProgramFiles(const std::function<void()>& act);

// How a thread of the profiler reaches the program's files. Lives on that thread, as long as it
// runs.
class FilesOfThread {
 public:
  // The calling thread's `program`. A thread that it begins has the same, because it shares the
  // calling thread's files.
  static std::shared_ptr<ProgramFiles> Program();

  // nullptr if the thread's files are the program's.
  explicit FilesOfThread(std::shared_ptr<ProgramFiles> program);
  ~FilesOfThread();
  FilesOfThread(const FilesOfThread&) = delete;
  FilesOfThread& operator=(const FilesOfThread&) = delete;

 private:
  FilesOfThread* const outer_;
  const std::shared_ptr<ProgramFiles> program_;
};

}  // namespace strobe::internal
