#include "../../src/encode/sample_parts.h"

#include <cstdint>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

// Two rows of one value each.
Profile TwoRows() {
  Profile profile;
  profile.value_types = {{"cpu", "nanoseconds"}};
  profile.samples = {{}, {}};
  profile.values = {30, 7};
  return profile;
}

TEST(SamplePartsTest, WithoutMomentsThePartsAreTheRows) {
  const testing::SampleProfile sample = testing::SmallProfile();
  const SampleParts parts(sample.profile);
  ASSERT_EQ(parts.parts().size(), sample.profile.samples.size());
  for (std::uint32_t i = 0; i < parts.parts().size(); ++i) {
    EXPECT_EQ(parts.parts()[i].sample, i);
    EXPECT_EQ(parts.parts()[i].time_ns, 0);
    EXPECT_THAT(parts.parts()[i].values, ::testing::ElementsAreArray(sample.profile.Values(i)));
  }
}

TEST(SamplePartsTest, MomentsComeFirstAndThenWhatTheyLeaveOfTheirRows) {
  Profile profile = TwoRows();
  profile.moments = {{.sample = 1, .time_ns = 100}, {.sample = 0, .time_ns = 110}};
  profile.moment_values = {7, 10};
  const SampleParts parts(profile);
  ASSERT_EQ(parts.parts().size(), 3U) << "nothing is left of row 1";
  EXPECT_EQ(parts.parts()[0].sample, 1U);
  EXPECT_EQ(parts.parts()[0].time_ns, 100);
  EXPECT_THAT(parts.parts()[0].values, ElementsAre(7));
  EXPECT_THAT(parts.parts()[1].values, ElementsAre(10));
  EXPECT_EQ(parts.parts()[2].sample, 0U);
  EXPECT_EQ(parts.parts()[2].time_ns, 0);
  EXPECT_THAT(parts.parts()[2].values, ElementsAre(20));
}

TEST(SamplePartsTest, ABrokenPromiseDoesNoHarm) {
  Profile profile = TwoRows();
  profile.values[0] = std::numeric_limits<std::int64_t>::min();
  profile.moments = {{.sample = 0, .time_ns = 100}};
  profile.moment_values = {1};
  EXPECT_EQ(SampleParts(profile).parts().size(), 3U);
}

}  // namespace
}  // namespace strobe::internal
