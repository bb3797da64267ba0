#include "strobe/runtime/profiler_core.h"

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

void AddExports(Stats& stats, const Stats& more) {
  AddOutputs(stats, more.outputs);
  if (!more.partly_named_module.empty()) stats.partly_named_module = more.partly_named_module;
  stats.out_of_memory += more.out_of_memory;
}

}  // namespace strobe::internal
