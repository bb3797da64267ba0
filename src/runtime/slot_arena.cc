#include "strobe/runtime/slot_arena.h"

#include <atomic>

#include "strobe/platform/capture_target.h"

namespace strobe::internal {
namespace {

constinit std::atomic<int> next_arena_number{0};

}  // namespace

int AcquireArenaNumber() {
  int number = next_arena_number.load(std::memory_order_relaxed);
  while (number < static_cast<int>(kMaxArenas)) {
    if (next_arena_number.compare_exchange_weak(number, number + 1, std::memory_order_relaxed)) return number;
  }
  return -1;
}

void ForgetArenaNumbers() { next_arena_number.store(0, std::memory_order_relaxed); }

}  // namespace strobe::internal
