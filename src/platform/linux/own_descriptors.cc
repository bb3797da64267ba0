#include "strobe/platform/linux/own_descriptors.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace strobe::internal {
namespace {

// Each has a descriptor plus one; 0 is free.
constinit std::array<std::atomic<int>, kMaxOwnDescriptors> descriptors{};
constinit std::atomic<bool> is_listening{false};

// Runs in the child before fork returns there. The child has one thread.
void CloseAll() {
  for (std::atomic<int>& entry : descriptors) {
    if (const int found = entry.exchange(0, std::memory_order_relaxed); found != 0)
      close(found - 1);
  }
}

}  // namespace

void CloseInChild(int descriptor) {
  if (!is_listening.exchange(true, std::memory_order_acq_rel))
    pthread_atfork(nullptr, nullptr, &CloseAll);
  for (std::atomic<int>& entry : descriptors) {
    int expected = 0;
    if (entry.compare_exchange_strong(expected, descriptor + 1, std::memory_order_acq_rel)) return;
  }
}

void ForgetInChild(int descriptor) {
  for (std::atomic<int>& entry : descriptors) {
    int expected = descriptor + 1;
    if (entry.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
  }
}

}  // namespace strobe::internal
