#pragma once

#include <condition_variable>
#include <mutex>

namespace strobe::testing {

// A std::latch that also works on Windows. The standard library of g++ 12 there reads the value and
// then begins to wait, so a wait misses a notification between the two, and never ends.
class Latch {
 public:
  explicit Latch(int count) : count_(count) {}
  void count_down() {
    const std::lock_guard lock(mutex_);
    --count_;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ <= 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_;
};

}  // namespace strobe::testing
