#include "strobe/aggregate/zone_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/core/zone.h"
#include "strobe/testing/profile_check.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

// The names from the root to the leaf; code has its address.
std::string StackText(const Profile& profile, std::size_t sample) {
  std::vector<std::string> names;
  for (std::uint32_t node = profile.samples[sample].stack; node != 0;
       node = profile.stacks[node].parent) {
    const Frame& frame = profile.frames[profile.stacks[node].frame];
    names.push_back(frame.is_pseudo() ? std::string(profile.PseudoName(frame))
                                      : std::to_string(frame.address));
  }
  std::string text;
  for (auto name = names.rbegin(); name != names.rend(); ++name) text += *name + " ";
  return text;
}

// Three stacks of one thread, with the labels that follow ThreadLabels.
Profile ThreeStacks() {
  Profile profile = ProfileHead();
  ProfileBuilder builder(profile);
  builder.AddThread(1, "main");
  const std::uint32_t main = builder.AddFrame(10, Frame::kNoModule);
  const std::uint32_t lex = builder.AddFrame(20, Frame::kNoModule);
  const std::uint32_t cut = builder.AddPseudoFrame(PseudoFrame::kTruncated);
  builder.AddSample(0, {main, lex}, {1, 10});
  builder.AddSample(0, {main}, {2, 20});
  builder.AddSample(0, {cut, lex}, {3, 30});
  return profile;
}

void PutInZone(Profile& profile, std::size_t sample, std::string_view path) {
  const LabelSet zone({{std::string(kZoneLabel), std::string(path)}});
  profile.samples[sample].labels = static_cast<std::uint32_t>(profile.label_sets.size());
  profile.label_sets.push_back(profile.label_sets[0].Joined(zone));
}

TEST(AddZoneFrames, ZonesStandAtTheRootInTheirOrder) {
  Profile profile = ThreeStacks();
  PutInZone(profile, 0, "request;parse");
  PutInZone(profile, 2, "request");
  const Profile before = profile;
  AddZoneFrames(profile);
  EXPECT_EQ(CheckProfile(profile), "");
  EXPECT_EQ(StackText(profile, 0), "request parse 10 20 ");
  EXPECT_EQ(StackText(profile, 1), "10 ");
  EXPECT_EQ(StackText(profile, 2), "request [truncated] 20 ");
  EXPECT_EQ(profile.values, before.values);
  EXPECT_EQ(profile.label_sets, before.label_sets);
}

TEST(AddZoneFrames, StacksInOneZoneShareTheirFrames) {
  Profile profile = ThreeStacks();
  PutInZone(profile, 0, "a");
  PutInZone(profile, 1, "a;b;a");
  profile.samples[2].labels = profile.samples[0].labels;
  AddZoneFrames(profile);
  EXPECT_EQ(CheckProfile(profile), "");
  EXPECT_EQ(StackText(profile, 1), "a b a 10 ");
  EXPECT_EQ(profile.zones, (std::vector<std::string>{"a", "b"})) << "a name has one frame";
  // The root, a, b, a; main twice, lex twice and [truncated].
  EXPECT_EQ(profile.stacks.size(), 9U);
}

TEST(AddZoneFrames, AProfileWithoutZonesStaysAsItIs) {
  Profile profile = ThreeStacks();
  AddZoneFrames(profile);
  EXPECT_TRUE(profile.zones.empty());
  EXPECT_EQ(profile.frames.size(), 3U);
  EXPECT_EQ(StackText(profile, 0), "10 20 ");
}

}  // namespace
}  // namespace strobe::testing
