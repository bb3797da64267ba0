// Monitor: a mutex with a condition variable. The standard library's condition variable takes a
// twentieth of this library's compile time when included, so it stays out of the headers.
#pragma once

#include <chrono>
#include <memory>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. Waits use the steady clock, so that setting the time of day neither ends nor
// prolongs them.
class Monitor {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Monitor();
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // The names that std::lock_guard and std::unique_lock require.
  void lock();
  void unlock();

  void NotifyAll();

  // The functions below require the lock, and release it while they wait. Wait and WaitUntil may
  // wake spuriously.
  void Wait();
  void WaitUntil(Deadline deadline);

  template <class Condition>
  void WaitFor(Condition condition) {
    while (!condition()) Wait();
  }
  // Waits until the condition holds, or the deadline has passed. Returns whether the condition
  // holds.
  template <class Condition>
  bool WaitFor(Condition condition, Deadline deadline) {
    while (!condition()) {
      if (std::chrono::steady_clock::now() >= deadline) return false;
      WaitUntil(deadline);
    }
    return true;
  }

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace internal
}  // namespace strobe
