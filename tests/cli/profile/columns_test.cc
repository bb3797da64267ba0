#include "../../../src/cli/profile/columns.h"

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr ValueType kSamples{"samples", "count"}, kCpu{"cpu", "nanoseconds"},
    kWall{"wall", "nanoseconds"};

LoadedProfile Made() {
  MadeProfile made({kSamples, kCpu});
  const std::uint32_t row = made.Add({"f"}, {1, 10});
  made.Add({"g"}, {2, 20});
  made.AddMoment(row, 5, {1, 7});
  made.profile().default_value_type = 1;
  return made.Finish();
}

TEST(SetColumnsTest, FillsWithZeros) {
  LoadedProfile loaded = Made();
  SetColumns(loaded, std::vector{kWall, kCpu, kSamples});
  EXPECT_THAT(loaded.profile.value_types, ElementsAre(kWall, kCpu, kSamples));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 0 10 1", "g 0 20 2"));
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(0, 7, 1));
  EXPECT_EQ(loaded.profile.default_value_type, 1u);
}

TEST(SetColumnsTest, LeavesColumnsOut) {
  LoadedProfile loaded = Made();
  SetColumns(loaded, std::vector{kSamples});
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 1", "g 2"));
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(1));
  EXPECT_EQ(loaded.profile.default_value_type, 0u);
}

TEST(ClearLevelsTest, TakesAwayWhatIsInUseAndThePeak) {
  constexpr ValueType kInUse{"inuse_space", "bytes"};
  constexpr ValueType kPeak{"peak_space", "bytes"};
  LoadedProfile loaded = Made();
  for (const ValueType& level : {kInUse, kPeak}) {
    SetColumns(loaded, std::vector{kCpu, level});
    loaded.profile.values = {10, 4, 20, 5};
    loaded.profile.moment_values = {7, 3};
    ClearLevels(loaded.profile);
    EXPECT_THAT(loaded.profile.values, ElementsAre(10, 0, 20, 0));
    EXPECT_THAT(loaded.profile.moment_values, ElementsAre(7, 0));
  }
}

TEST(TypesTest, CommonAndAll) {
  const std::vector<ValueType> a{kSamples, kCpu}, b{kWall, kSamples};
  EXPECT_THAT(CommonTypes(a, b), ElementsAre(kSamples));
  EXPECT_THAT(CommonTypes(a, {}), IsEmpty());
  EXPECT_THAT(AllTypes(a, b), ElementsAre(kSamples, kCpu, kWall));
}

}  // namespace
}  // namespace strobe::internal
