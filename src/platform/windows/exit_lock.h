// ExitLock: that the process does not end while one of its threads is stopped.
#pragma once

namespace strobe::internal {

// A thread that ends the process kills all other threads. Were this thread stopped at that
// moment, and the one that would resume it among the killed, then it would stay so for ever, and
// the process with it. It holds the process's own lock meanwhile (that of the process environment
// block: so do all of NT's systems, and Wine): so this lock, while held here, keeps it from
// beginning. Others mostly hold it for a few instructions, when they look into the environment or
// take a slot of thread-local storage; but a change of directory holds it until that is
// open.
class ExitLock {
 public:
  // Finds the lock, once a process; false where there is none, and then it is never held. That
  // itself waits for the loader's lock, so it is done before any thread can want an ExitLock while
  // others wait for him.
  static bool Prepare();

  // Does not wait for long. As long as it is held nothing may be done but to stop threads and to
  // resume them: no allocation, for the heap's lock comes after this one, and nothing of the
  // loader's, whose comes before.
  ExitLock();
  ~ExitLock();
  ExitLock(const ExitLock&) = delete;
  ExitLock& operator=(const ExitLock&) = delete;

  // Whether threads may be stopped as long as this object lives.
  [[nodiscard]] bool is_held() const { return is_held_; }

 private:
  bool is_held_ = false;
};

// Whether the process is at its end, so that all other threads have been killed, and whatever they
// had locked stays so.
bool IsProcessEnding();

}  // namespace strobe::internal
