// The files of a program that treats numbers as its own, as it may: it closes, replaces and opens
// them at random, and checks that nobody else reads, writes or closes what it has.
#pragma once

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

namespace strobe::testing {

// One thread uses it.
class ProgramsFiles {
 public:
  // It treats these as its own. Below, the system gives numbers to what any thread opens: no other
  // thread of a program may touch those, whether it has a profiler or not.
  static constexpr int kFirstNumber = 30;
  static constexpr int kLimit = 200;
  // These it only closes: what is kept lies there. Between a look at a number and its use there is
  // a moment, in which a program must not put another file there.
  static constexpr int kFirstHigh = 512;
  static constexpr int kHighLimit = 640;

  explicit ProgramsFiles(std::uint64_t seed) : random_(seed) {}

  // Does one thing at random.
  void Act() {
    switch (Below(40)) {
      case 0: CloseFrom(kFirstNumber); break;
      case 1: CloseFrom(Number()); break;
      case 2: CloseRange(Number(), Below(kLimit)); break;
      case 3: Fork(); break;
      case 4:
      case 5:
      case 6: Close(Number()); break;
      case 7:
      case 8:
      case 9:
      case 10: Open(Below(2)); break;
      default: Duplicate(LowNumber()); break;
    }
  }

  // Of each number: the file is the one that is known, its position is where it was, and what waits
  // in it to be read is what this program has written. Says what is not.
  void Check(const char* where) {
    for (const auto& [number, known] : files_) {
      const State now = StateOf(number);
      if (now == known) continue;
      ++harm_;
      std::printf(
          "harm, %s: %d was inode %llu at %lld with %d bytes, is inode %llu at %lld with %d\n",
          where, number, known.inode, known.position, known.bytes, now.inode, now.position,
          now.bytes);
      std::fflush(stdout);
    }
  }
  [[nodiscard]] int harm() const { return harm_; }
  [[nodiscard]] std::size_t size() const { return files_.size(); }

 private:
  struct State {
    unsigned long long inode = 0;
    long long position = 0;
    int bytes = 0;  // of a file, its size; of a socket, what it could read
    bool operator==(const State&) const = default;
  };
  static State StateOf(int number) {
    struct stat info {};
    State state;
    if (fstat(number, &info) != 0) return state;
    state.inode = info.st_ino;
    if (S_ISSOCK(info.st_mode)) {
      ioctl(number, FIONREAD, &state.bytes);
    } else {
      state.position = lseek(number, 0, SEEK_CUR);
      state.bytes = static_cast<int>(info.st_size);
    }
    return state;
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  int LowNumber() { return kFirstNumber + Below(kLimit - kFirstNumber); }
  int Number() { return Below(4) == 0 ? kFirstHigh + Below(kHighLimit - kFirstHigh) : LowNumber(); }
  void Know(int number) {
    if (number >= 0) files_[number] = StateOf(number);
  }
  void Open(int kind) {
    if (kind == 0) {
      char path[] = "programs_file.XXXXXX";
      const int file = mkstemp(path);
      unlink(path);
      if (file >= 0 && write(file, "of the program", 14) == 14) lseek(file, 7, SEEK_SET);
      return Take(file);
    }
    std::array<int, 2> ends{};
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) != 0) return;
    for (const int end : ends) {
      if (write(end, "unread", 6) != 6) std::abort();
    }
    for (const int end : ends) Take(end);
  }
  // Moves what has just been opened to a number of its own.
  void Take(int number) {
    if (number < 0) return;
    const int place = LowNumber();
    if (dup2(number, place) == place) Know(place);
    if (number != place) close(number);
  }
  void Duplicate(int place) {
    if (files_.empty()) return Open(Below(2));
    auto from = files_.begin();
    std::advance(from, Below(static_cast<int>(files_.size())));
    if (from->first != place && dup2(from->first, place) == place) Know(place);
  }
  void Close(int number) {
    // Also numbers that are not its own, as daemons do.
    close(number);
    files_.erase(number);
  }
  void CloseFrom(int first) {
    for (int number = first; number < 1024; ++number) close(number);
    files_.erase(files_.lower_bound(first), files_.end());
  }
  void CloseRange(int first, int count) {
    for (int number = first; number <= first + count; ++number) close(number);
    files_.erase(files_.lower_bound(first), files_.upper_bound(first + count));
  }
  void Fork() {
    const pid_t child = fork();
    if (child == 0) {
      Check("in a fork's child");
      _exit(harm_ != 0 ? 1 : 0);
    }
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
      std::printf("harm: a child ended with %d\n", status);
      ++harm_;
    }
  }

  std::mt19937_64 random_;
  std::map<int, State> files_;  // by number
  int harm_ = 0;
};

// Acts so often, and says what came of it. Returns the status to exit with.
template <class Pause>
int RunProgramsFiles(int acts, std::uint64_t seed, const Pause& pause) {
  ProgramsFiles files(seed);
  for (int i = 0; i < acts; ++i) {
    files.Act();
    if (i % 16 == 0) files.Check("meanwhile");
    pause();
  }
  files.Check("at the end");
  std::printf("%d acts, %zu files, harm: %d\n", acts, files.size(), files.harm());
  std::fflush(stdout);
  return files.harm() == 0 ? 0 : 1;
}

}  // namespace strobe::testing
