// Locking an absl::Mutex by the names that its version has: Lock and Unlock until 2025, lock and
// unlock since.
#pragma once

#include "absl/synchronization/mutex.h"

namespace strobe::internal {

template <class Mutex = absl::Mutex>
void LockMutex(Mutex& mutex) {
  if constexpr (requires { mutex.lock(); }) {
    mutex.lock();
  } else {
    mutex.Lock();
  }
}

template <class Mutex = absl::Mutex>
void UnlockMutex(Mutex& mutex) {
  if constexpr (requires { mutex.unlock(); }) {
    mutex.unlock();
  } else {
    mutex.Unlock();
  }
}

}  // namespace strobe::internal
