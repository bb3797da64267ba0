#include "strobe/runtime/control/core_base.h"

#include <thread>

namespace strobe::internal {

bool LockBy(std::unique_lock<std::mutex>& lock, std::chrono::steady_clock::time_point deadline) {
  constexpr std::chrono::milliseconds kPause(1);
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace strobe::internal
