#include "strobe/aggregate/selected_rows.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(WithRowsTest, KeepsTheValuesOfTheRowsThatAreWanted) {
  Profile profile;
  profile.program = "program";
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}};
  profile.samples = {{.stack = 1, .labels = 0}, {.stack = 2, .labels = 1}, {.stack = 3}};
  profile.values = {1, 10, 2, 20, 3, 30};
  profile.moments = {{.sample = 1, .time_ns = 5}};
  profile.moment_values = {2, 20};
  const Profile selected = WithRows(profile, [](std::size_t row) { return row != 1; });
  EXPECT_THAT(selected.values, ElementsAre(1, 10, 3, 30));
  EXPECT_THAT(selected.samples, SizeIs(2));
  EXPECT_EQ(selected.samples[1].stack, 3u);
  EXPECT_THAT(selected.moments, IsEmpty());
  EXPECT_EQ(selected.program, "program");
}

}  // namespace
}  // namespace strobe
