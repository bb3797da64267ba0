// BackgroundDelivery: delivers one profile after another beside the recording.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <system_error>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// On a thread of its own, because a server may be slow. Used by one thread.
class BackgroundDelivery {
 public:
  // Between two calls of what Await is given.
  static constexpr std::chrono::milliseconds kPause{10};

  // True while a delivery goes on.
  [[nodiscard]] bool IsBusy() const {
    return last_.valid() && last_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
  }
  // True once a delivery has begun.
  [[nodiscard]] bool has_begun() const { return has_begun_; }

  // Waits for the delivery before, and begins one: `deliver` returns whether it has succeeded. If
  // the system refuses the thread, delivers before it returns.
  void Begin(const std::function<bool()>& deliver) {
    Await();
    has_begun_ = true;
    try {
      last_ = std::async(std::launch::async, deliver);
    } catch (const std::system_error&) {
      all_succeeded_ &= deliver();
    }
  }

  // Waits until no delivery goes on, and calls `meanwhile` now and then. False if any has failed.
  bool Await(const std::function<void()>& meanwhile = [] {}) {
    if (last_.valid()) {
      while (last_.wait_for(kPause) != std::future_status::ready) meanwhile();
      all_succeeded_ &= last_.get();
    }
    return all_succeeded_;
  }

 private:
  std::future<bool> last_;
  bool has_begun_ = false;
  bool all_succeeded_ = true;
};

}  // namespace internal
}  // namespace strobe
