// Descriptor: a file that Strobe keeps open in a program. The program may close any number, or put
// another file in its place: closefrom, close_range, dup2, a shell's `exec 3>`. So a number is no
// file. A descriptor knows which file it has, and asks before each use whether the number is still
// that file. What is not is left alone.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Which file a number stands for. All zero if it stands for none.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  // Of an event of perf_event_open: its id, because all such files have one inode. An eventfd has
  // nothing of the kind: two of them cannot be told apart.
  std::uint64_t event = 0;

  static FileIdentity Of(int number) noexcept;
  bool operator==(const FileIdentity&) const = default;
};

// Programs and shells give small numbers to their own files. Those that are kept begin here, or at
// half of the process's limit if that is less.
inline constexpr int kFirstKeptNumber = 512;

// A number, and the file that it stood for. Owns nothing, so that it can lie in static memory.
struct KnownFile {
  int number = -1;
  FileIdentity identity;

  // Of a file that has just been opened, which this moves to a high number, from which an exec
  // closes it. The number stays if no higher one is free. Of none if `open_number` is -1.
  static KnownFile Of(int open_number) noexcept;
  // The same of an event of perf_event_open. The program may have put another file in its place by
  // now: of none then, and that file is left alone.
  static KnownFile OfEvent(int open_number) noexcept;
  // The file's number. -1 if there is none, or if the program has taken the number.
  [[nodiscard]] int Number() const noexcept {
    return number >= 0 && FileIdentity::Of(number) == identity ? number : -1;
  }
  // True if the calling thread has files of its own (unshare(CLONE_FILES)) and not this one, which
  // the process's first thread still has. False if the system does not tell.
  [[nodiscard]] bool IsElsewhere() const noexcept;
  // Opens the file once more, also if it is elsewhere. -1 if it is nowhere, or the system refuses.
  [[nodiscard]] int Reopen() const noexcept;
  // Closes the file, unless the program has. 0 or errno, which is EBADF if the program has. Some
  // file systems say only here that the disk is full.
  int Close() noexcept;

 private:
  static KnownFile MoveUp(KnownFile file) noexcept;
};

// Moves, and closes the file at its end. A fork's child inherits the file; its copy of the object
// closes the child's number. Used by one thread at a time, but that several may call get().
class Descriptor {
 public:
  Descriptor() = default;
  // Takes over the file, and moves it to a high number. -1 stands for none.
  explicit Descriptor(int number) noexcept : file_(KnownFile::Of(number)) {}
  Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~Descriptor() { Close(); }

  // See KnownFile.
  [[nodiscard]] int get() const noexcept { return file_.Number(); }
  [[nodiscard]] bool is_open() const noexcept { return get() >= 0; }
  [[nodiscard]] bool IsElsewhere() const noexcept { return file_.IsElsewhere(); }
  int Close() noexcept { return file_.Close(); }

 private:
  KnownFile file_;
};

// Writes all of it. 0 or errno.
int WriteAll(const Descriptor& file, std::string_view bytes) noexcept;

}  // namespace internal
}  // namespace strobe
