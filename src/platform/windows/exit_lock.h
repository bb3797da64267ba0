// ExitLock: that the process does not end while one of its threads is stopped.
#pragma once

#include <cstdint>

namespace strobe::internal {

// Whoever ends a process kills all its threads but the own. Were this thread stopped at that moment, and the one that would resume it among
// the killed, then it would stay so for ever, and the process with it. It holds the loader's lock meanwhile: so this lock, while held here,
// keeps it from beginning.
class ExitLock {
 public:
  // Never waits. Where the lock is not to be had, only a thread may be stopped that does not hold it itself: one that loads a library
  // cannot be told from one that ends the process.
  explicit ExitLock(std::uint64_t thread_id);
  ~ExitLock();
  ExitLock(const ExitLock&) = delete;
  ExitLock& operator=(const ExitLock&) = delete;

  // Whether that thread may be stopped as long as this object lives.
  [[nodiscard]] bool may_stop() const { return may_stop_; }

 private:
  std::uintptr_t cookie_ = 0;  // the loader's, or 0 where its lock is not held
  bool may_stop_ = false;
};

}  // namespace strobe::internal
