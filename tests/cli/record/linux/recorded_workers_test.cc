#include "../../../../src/cli/record/linux/recorded_workers.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// What it awaits is tested with real workers in tests/preload/record_test.py.
TEST(AwaitWorkersTest, WithoutAWorkerItReturnsAtOnce) {
  constexpr std::chrono::minutes kLong(10);
  const auto begin = std::chrono::steady_clock::now();
  AwaitWorkers("STROBE_TEST_NO_SUCH=variable", kLong);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, kLong);
}

}  // namespace
}  // namespace strobe::internal
