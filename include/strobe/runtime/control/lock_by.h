// LockBy: waits for a mutex, but not for ever.
#pragma once

#include <chrono>
#include <mutex>
#include <thread>

namespace strobe::internal {

// Locks the mutex. Returns false if the mutex is still locked at the deadline.
template <class Mutex>
bool LockBy(std::unique_lock<Mutex>& lock, std::chrono::steady_clock::time_point deadline) {
  constexpr std::chrono::milliseconds kPause(1);
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace strobe::internal
