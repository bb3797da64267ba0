#include "strobe/provider/sample_provider.h"

#include <array>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

struct UnitlessProvider : testing::ArchetypeProvider {
  using ArchetypeProvider::ArchetypeProvider;
  static constexpr std::array<const char*, 1> kValueTypes{"samples"};
};
static_assert(!SampleProvider<UnitlessProvider>, "a column has a type and a unit");

struct LossyProvider : testing::ArchetypeClockedProvider {
  using ArchetypeClockedProvider::ArchetypeClockedProvider;
  void Detach(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {}
};
static_assert(!SampleProvider<LossyProvider>, "Detach says what is missing");

struct HalfPolledProvider : testing::ArchetypeProvider {
  using ArchetypeProvider::ArchetypeProvider;
  [[nodiscard]] std::int64_t poll_period_ns() const { return 1; }
};
static_assert(!SampleProvider<HalfPolledProvider>, "a period is of no use without Poll");

TEST(RandomSource, IsUniformInItsInterval) {
  RandomSource random(42);
  std::array<int, 10> tenths{};
  for (int i = 0; i < 100000; ++i) {
    const double number = random.Uniform();
    ASSERT_GE(number, 0);
    ASSERT_LT(number, 1);
    ++tenths[static_cast<std::size_t>(number * 10)];
  }
  for (const int count : tenths) EXPECT_NEAR(count, 10000, 500);
}

TEST(RandomSource, TheSeedIsTheSequence) {
  RandomSource one(1);
  RandomSource same(1);
  RandomSource other(2);
  int equal = 0;
  for (int i = 0; i < 100; ++i) {
    const double number = one.Uniform();
    EXPECT_EQ(number, same.Uniform());
    equal += number == other.Uniform() ? 1 : 0;
  }
  EXPECT_EQ(equal, 0) << "neighbouring seeds have nothing in common";
}

}  // namespace
}  // namespace strobe
