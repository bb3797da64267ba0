// Monitor: a mutex, and threads that wait for a change of what it guards. The standard library's
// condition variable takes a twentieth of the time that including this library costs, so it stays
// out of the headers.
#pragma once

#include <chrono>
#include <memory>

#include "strobe/base/visibility.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Thread-safe. Waits go by the steady clock, so that setting the time of day neither ends nor
// prolongs them.
class Monitor {
 public:
  using Deadline = std::chrono::steady_clock::time_point;

  Monitor();
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  // The names that std::lock_guard and std::unique_lock ask for.
  void lock();
  void unlock();

  void NotifyAll();

  // The rest only with the lock held; it is free while they wait. These may return early, without a
  // reason.
  void Wait();
  void WaitUntil(Deadline deadline);

  template <class Condition>
  void WaitFor(Condition condition) {
    while (!condition()) Wait();
  }
  // Whether the condition holds, by the deadline at the latest.
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

}  // namespace strobe::internal
STROBE_HIDDEN_END
