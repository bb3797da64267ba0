#include "strobe/testing/profiles.h"

#include <set>
#include <string>

#include "gtest/gtest.h"
#include "strobe/testing/profile_check.h"

namespace strobe::testing {
namespace {

TEST(ProfilesTest, EverySampleProfileIsConsistentAndHasAName) {
  std::set<std::string> names;
  for (const SampleProfile& sample : SampleProfiles()) {
    EXPECT_EQ(CheckProfile(sample.profile), "") << sample.name;
    EXPECT_TRUE(names.insert(sample.name).second) << sample.name;
    EXPECT_TRUE(sample.symbols.frames.empty() ||
                sample.symbols.frames.size() == sample.profile.frames.size())
        << sample.name;
  }
}

TEST(ProfilesTest, RandomProfilesHaveTheShapeAskedFor) {
  const SampleProfile random = RandomProfile(100, 30, 0, 1000);
  const SampleProfile shared = RandomProfile(100, 30, 26, 1000);
  EXPECT_EQ(random.profile.samples.size(), 100U);
  // The first stack has 30 nodes; each later one adds the four that it does not share, fewer where
  // a frame happens to come again.
  EXPECT_LE(shared.profile.stacks.size(), 1 + 30 + 99 * 4);
  EXPECT_GT(shared.profile.stacks.size(), 1 + 30 + 99 * 3);
  for (const ProfileSample& sample : random.profile.samples) {
    std::size_t depth = 0;
    for (std::uint32_t node = sample.stack; node != 0; node = random.profile.stacks[node].parent)
      ++depth;
    EXPECT_EQ(depth, 30U);
  }
  EXPECT_EQ(random.profile.values, RandomProfile(100, 30, 0, 1000).profile.values);
  EXPECT_NE(random.profile.values, RandomProfile(100, 30, 0, 1000, 2).profile.values);
}

}  // namespace
}  // namespace strobe::testing
