#pragma once

#include <atomic>
#include <cstdint>

namespace strobe::internal {

// A lock that a fork waits for. It is held for a few system calls at most, and never while its
// owner allocates. It needs no construction. A fork's child may unlock it, though its owner does
// not exist there. Works with std::lock_guard.
class BriefLock {
 public:
  void lock() {
    while (!try_lock()) Pause();
  }
  bool try_lock() { return !is_held_.exchange(true, std::memory_order_acquire); }
  // False if the lock was not free within that time.
  bool LockFor(std::int64_t time_ns);
  void unlock() { is_held_.store(false, std::memory_order_release); }

  // Sleeps for a moment; for loops that wait.
  static void Pause();

 private:
  std::atomic<bool> is_held_{false};
};

// Held around the profiler's calls of the loader, and by a fork. So no thread of the profiler holds
// the loader's own lock when the process forks; the child could never release that lock. A fork
// waits for this mutex, so nothing may allocate under it.
BriefLock& LoaderMutex();

// For a fork's child: a thread of the program may have held the loader's own lock during the fork,
// which is then locked for ever. The next call of the loader checks that, in bounded time.
void DoubtLoader();

}  // namespace strobe::internal
