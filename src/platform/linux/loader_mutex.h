#pragma once

#include <atomic>
#include <cstdint>

namespace strobe::internal {

// A lock for what a fork waits for: held for a few system calls at most, never while its owner
// allocates. It needs no construction, and a fork's child may open it although its owner does not
// exist there. Fits std::lock_guard.
class BriefLock {
 public:
  void lock() {
    while (!try_lock()) Pause();
  }
  bool try_lock() { return !is_held_.exchange(true, std::memory_order_acquire); }
  // False where it could not be had in that time.
  bool LockFor(std::int64_t time_ns);
  void unlock() { is_held_.store(false, std::memory_order_release); }

  // Sleeps for a moment: what every wait for a short time is made of here.
  static void Pause();

 private:
  std::atomic<bool> is_held_{false};
};

// Held around our calls of the loader, and by a fork: the loader's own lock must not be ours at the
// instant of a fork, for it would never be released in the child. A fork waits for it, so nothing
// may allocate under it.
BriefLock& LoaderMutex();

// In a fork's child: another thread may have held the loader's own lock, which is then held for
// ever. The next question to the loader finds out, in bounded time.
void DoubtLoader();

}  // namespace strobe::internal
