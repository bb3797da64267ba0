#include "strobe/runtime/channels/sample_channel.h"

#include <chrono>
#include <thread>

namespace strobe::internal {

bool WaitUntilClear(const SharedFlag& flag, std::int64_t timeout_ns) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(timeout_ns);
  while (flag.load(std::memory_order_seq_cst)) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace strobe::internal
