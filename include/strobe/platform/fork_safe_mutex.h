// ForkSafeMutex: a mutex with static storage that a fork's child can lock, though a thread that
// does not exist in the child may have held it at the fork.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Held for short times, by the control plane. What it guards is, in such a child, as that thread
// has left it. Constant-initialized; works with std::lock_guard.
template <Platform P>
class ForkSafeMutex {
 public:
  void lock() {
    while (!try_lock()) std::this_thread::sleep_for(kPause);
  }
  bool try_lock() {
    const std::uint64_t own = P::ForkCount() + 1;
    std::uint64_t holder = holder_.load(std::memory_order_relaxed);
    return holder != own && holder_.compare_exchange_strong(holder, own, std::memory_order_acquire);
  }
  void unlock() { holder_.store(kNone, std::memory_order_release); }

 private:
  static constexpr std::uint64_t kNone = 0;
  static constexpr std::chrono::microseconds kPause{20};

  // The process whose thread holds it, by the number of its forks plus 1: no other is held here.
  std::atomic<std::uint64_t> holder_{kNone};
};

}  // namespace internal
}  // namespace strobe
