#include "strobe/provider/event_target.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

template <std::size_t kTypes>
struct Events {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, kTypes> kValueTypes{};
  [[nodiscard]] bool enabled() const { return true; }
};

struct FakeProfiler {
  std::vector<std::int64_t> values;
  std::uint32_t skip = 0;
  StackKeeper* keeper = nullptr;
  bool is_taken = true;

  template <class Provider>
  bool CaptureHere(const std::array<std::int64_t, Provider::kValueTypes.size()>& amounts,
                   std::uint32_t frames, StackKeeper* given) {
    values.assign(amounts.begin(), amounts.end());
    skip = frames;
    keeper = given;
    return is_taken;
  }
};

template <std::size_t kTypes>
std::vector<std::int64_t> ValuesOf(const SampledAmounts& amounts) {
  FakeProfiler profiler;
  const EventTarget target = TargetOf<Events<kTypes>, 0>(profiler);
  EXPECT_TRUE(target.record(target.profiler, amounts, nullptr));
  return profiler.values;
}

TEST(EventTarget, PutsTheAmountsIntoTheProvidersColumns) {
  const SampledAmounts amounts{.count = 3, .total = 700};
  EXPECT_EQ(ValuesOf<1>(amounts), (std::vector<std::int64_t>{700}));
  EXPECT_EQ(ValuesOf<2>(amounts), (std::vector<std::int64_t>{3, 700}));
  EXPECT_EQ(ValuesOf<4>(amounts), (std::vector<std::int64_t>{3, 700, 0, 0}));
}

TEST(EventTarget, HandsOnWhatItGetsAndWhatComesBack) {
  FakeProfiler profiler;
  profiler.is_taken = false;
  const EventTarget target = TargetOf<Events<1>, 5>(profiler);
  static StackTable<> table;
  StackKeeper keeper{.table = table};
  EXPECT_FALSE(target.record(target.profiler, {}, &keeper));
  EXPECT_EQ(profiler.skip, 5U);
  EXPECT_EQ(profiler.keeper, &keeper);
}

}  // namespace
}  // namespace strobe::internal
