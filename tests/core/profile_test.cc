#include "strobe/core/profile.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(Profile, ValuesAreRowByRow) {
  Profile profile;
  profile.value_types = {{"samples", "count"}, {"cpu", "nanoseconds"}, {"wall", "nanoseconds"}};
  profile.samples = {{.stack = 1, .labels = 0}, {.stack = 2, .labels = 1}};
  profile.label_sets = {ThreadLabels(1, "one"), ThreadLabels(2, "two")};
  profile.values = {1, 10, 100, 2, 20, 200};
  EXPECT_EQ(profile.Labels(1).Text(kThreadNameLabel), "two");
  ASSERT_EQ(profile.Values(1).size(), 3u);
  EXPECT_EQ(profile.Values(0)[2], 100);
  EXPECT_EQ(profile.Values(1)[0], 2);
  EXPECT_EQ(profile.Values(1)[1], 20);
}

TEST(Frame, APseudoFrameIsNeitherCodeNorUnknownCode) {
  EXPECT_TRUE((Frame{.address = 0, .module = Frame::kPseudo}).is_pseudo());
  EXPECT_FALSE((Frame{.address = 0x1000, .module = Frame::kNoModule}).is_pseudo());
  EXPECT_FALSE((Frame{.address = 0x1000, .module = 0}).is_pseudo());
  EXPECT_FALSE(Frame{}.is_pseudo());
}

}  // namespace
}  // namespace strobe
