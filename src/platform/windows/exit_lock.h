// ExitLock: that the process does not end while one of its threads is stopped.
#pragma once

#include <cstdint>

namespace strobe::internal {

// Whoever ends a process kills all its threads but the own. Were this thread stopped at that moment, and the one that would resume it among
// the killed, then it would stay so for ever, and the process with it. It holds the loader's lock meanwhile: so this lock, while held here,
// keeps it from beginning.
class ExitLock {
 public:
  // Finds the loader's functions, once a process; without them no lock is ever held. That itself waits for the loader's lock, so it is done
  // before anybody can want an ExitLock while others wait for him.
  static void Prepare();

  // Never waits. The lock is not to be had while another thread loads or unloads a library, begins, ends, or ends the process.
  ExitLock();
  ~ExitLock();
  ExitLock(const ExitLock&) = delete;
  ExitLock& operator=(const ExitLock&) = delete;

  // Whether threads may be stopped as long as this object lives.
  [[nodiscard]] bool is_held() const { return cookie_ != 0; }

 private:
  std::uintptr_t cookie_ = 0;  // the loader's
};

// Whether the process is at its end, so that all other threads have been killed, and whatever they had locked stays so.
bool IsProcessEnding();

}  // namespace strobe::internal
