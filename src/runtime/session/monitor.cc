#include "strobe/runtime/session/monitor.h"

#include <condition_variable>
#include <mutex>

namespace strobe::internal {

struct Monitor::State {
  std::mutex mutex;
  std::condition_variable changed;
};

Monitor::Monitor() : state_(std::make_unique<State>()) {}
Monitor::~Monitor() = default;

void Monitor::lock() { state_->mutex.lock(); }
void Monitor::unlock() { state_->mutex.unlock(); }
void Monitor::NotifyAll() { state_->changed.notify_all(); }

void Monitor::Wait() {
  std::unique_lock lock(state_->mutex, std::adopt_lock);
  state_->changed.wait(lock);
  lock.release();
}

void Monitor::WaitUntil(Deadline deadline) {
  std::unique_lock lock(state_->mutex, std::adopt_lock);
  state_->changed.wait_until(lock, deadline);
  lock.release();
}

}  // namespace strobe::internal
