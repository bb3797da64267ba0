// Tests that are profiled if they are slow.
#include "strobe/strobe_gtest.h"

#include <chrono>

namespace {

void Burn(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

TEST(Some, IsSlow) { Burn(std::chrono::milliseconds(400)); }
TEST(Some, IsFast) {}
TEST(Some, IsSlowAndSkips) {
  Burn(std::chrono::milliseconds(400));
  GTEST_SKIP() << "after its work";
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  strobe::ProfileSlowTests(
      {.slow_s = 0.3, .directory = "slow", .profiler = {.sampling = {.max_overhead = 1}}});
  return RUN_ALL_TESTS();
}
