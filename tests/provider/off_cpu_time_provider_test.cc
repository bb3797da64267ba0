#include "strobe/provider/off_cpu_time_provider.h"

#include <optional>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe {
namespace {

using testing::ManualThread;

class OffCpuTimeProviderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    thread_.RunFor(12'345);  // before its attachment
    thread_.Begin();
    provider_.Attach(thread_, state_, random_, now_ns_);
  }
  void Run(std::int64_t cpu_ns) {
    thread_.RunFor(cpu_ns);
    now_ns_ += cpu_ns;
  }
  std::optional<std::int64_t> Residual(std::int64_t weight_ns = 0) {
    return provider_.Residual(thread_, state_, weight_ns, now_ns_);
  }

  OffCpuTimeProvider provider_{SamplingOptions{.wall_frequency_hz = 10}};
  OffCpuTimeProvider::ThreadState state_;
  RandomSource random_{1};
  ManualThread thread_;
  std::int64_t now_ns_ = 5'000'000'000;
};

TEST_F(OffCpuTimeProviderTest, WallSamplingEnablesIt) {
  EXPECT_FALSE(OffCpuTimeProvider(SamplingOptions{}).enabled());
  EXPECT_EQ(provider_.period_ns(), 100'000'000);
}

TEST_F(OffCpuTimeProviderTest, IsTheWallTimeWithoutTheCpuTime) {
  Run(300);
  EXPECT_EQ(Residual(), 0);
  now_ns_ += 700;
  EXPECT_EQ(Residual(), 700);
  EXPECT_EQ(Residual(900), -200) << "polls have given more than there is";
  Run(50);
  EXPECT_EQ(provider_.Detach(thread_, state_, now_ns_ + 4), 704);
}

TEST_F(OffCpuTimeProviderTest, DoesNotFallWhereTheCpuClockIsFaster) {
  now_ns_ += 100;
  EXPECT_EQ(Residual(), 100);
  thread_.RunFor(1005);
  now_ns_ += 1000;
  EXPECT_EQ(Residual(), 100);
  now_ns_ += 6;
  EXPECT_EQ(Residual(), 101);
}

TEST_F(OffCpuTimeProviderTest, IsNotKnownIfTheCpuClockCannotBeRead) {
  thread_.is_gone = true;
  EXPECT_EQ(Residual(), std::nullopt);
  EXPECT_EQ(provider_.Detach(thread_, state_, now_ns_), std::nullopt);
}

}  // namespace

namespace testing {

struct OffCpuTimeHarness {
  using Provider = OffCpuTimeProvider;
  static SamplingOptions Enabled() { return {.wall_frequency_hz = 10}; }
  static SamplingOptions Disabled() { return {.wall_frequency_hz = 0}; }
  static constexpr bool kHasResidual = true;
};
INSTANTIATE_TYPED_TEST_SUITE_P(OffCpuTime, ProviderConformance, OffCpuTimeHarness);

}  // namespace testing
}  // namespace strobe
