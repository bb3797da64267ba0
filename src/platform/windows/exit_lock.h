// ExitLock: keeps the process from ending while one of its threads is stopped.
#pragma once

namespace strobe::internal {

// A thread that ends the process kills all other threads. If that thread itself is stopped then,
// and it has killed the thread that would resume it, the process never ends. A thread that ends the
// process holds the lock of the process environment block, on all NT systems and on Wine. So while
// ExitLock holds that lock, no thread can begin to end the process. Other code mostly holds the
// lock for a few instructions, to read the environment or to allocate thread-local storage. A
// change of directory holds it until the directory is open.
class ExitLock {
 public:
  // Finds the lock, once a process. False if there is none; then is_held() is always false. The
  // search waits for the loader's lock, so it comes before any use of an ExitLock.
  static bool Prepare();

  // Does not wait for long. While it is held, a thread may only be stopped and resumed: no
  // allocation and no call of the loader. In the system's order of locks, the heap's lock comes
  // after this one and the loader's before it, and a stopped thread may hold either.
  ExitLock();
  ~ExitLock();
  ExitLock(const ExitLock&) = delete;
  ExitLock& operator=(const ExitLock&) = delete;

  // True if threads may be stopped while this object lives.
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  bool is_held_ = false;
};

// True if the process is ending: all other threads have been killed, and their locks stay locked.
bool IsProcessEnding();

}  // namespace strobe::internal
