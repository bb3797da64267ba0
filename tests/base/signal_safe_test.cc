#include "strobe/base/signal_safe.h"

#include <gtest/gtest.h>

#include <csignal>

namespace strobe {
namespace {

volatile std::sig_atomic_t sum = 0;

[[gnu::noinline]] STROBE_SIGNAL_SAFE int Twice(int value) { return 2 * value; }
STROBE_SIGNAL_SAFE void Handler(int signal) { sum = sum + Twice(signal); }

TEST(SignalSafe, MarkedFunctionsRunInAHandler) {
  void (*previous)(int) = std::signal(SIGTERM, &Handler);
  std::raise(SIGTERM);
  std::signal(SIGTERM, previous);
  EXPECT_EQ(sum, 2 * SIGTERM);
}

[[gnu::noinline]] void* ReturnAddress() {
  asm volatile("");  // Without an effect of its own, two calls would be made one.
  return __builtin_return_address(0);
}

TEST(SignalSafe, NoinlineGivesEachCallItsOwnReturnAddress) {
  void* first = ReturnAddress();
  void* second = ReturnAddress();
  EXPECT_NE(first, second);
}

}  // namespace
}  // namespace strobe
