#include "strobe/worker/shared/profile_bytes.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "../known_value_types.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using testing::kKnownValueTypes;

TEST(ProfileBytes, ComeBackAsTheSameProfile) {
  for (const testing::SampleProfile& sample : testing::SampleProfiles()) {
    const std::string bytes = ProfileBytes(sample.profile);
    const absl::StatusOr<Profile> profile = ProfileFrom(bytes, kKnownValueTypes);
    ASSERT_TRUE(profile.ok()) << sample.name << ": " << profile.status();
    EXPECT_EQ(ProfileBytes(*profile), bytes) << sample.name;
    EXPECT_EQ(*PprofEncoder().Encode(*profile, sample.symbols),
              *PprofEncoder().Encode(sample.profile, sample.symbols))
        << sample.name;
    EXPECT_EQ(profile->modules, sample.profile.modules) << sample.name;
    EXPECT_EQ(profile->label_sets, sample.profile.label_sets) << sample.name;
    EXPECT_EQ(profile->stats.samples, sample.profile.stats.samples) << sample.name;
    EXPECT_EQ(profile->stats.memory_bytes, sample.profile.stats.memory_bytes) << sample.name;
  }
}

TEST(ProfileBytes, TheMachineComesAlong) {
  Profile profile = testing::SmallProfile().profile;
  profile.machine = LabelSet({{"cpus", 4}, {"os", "Own"}});
  const absl::StatusOr<Profile> read = ProfileFrom(ProfileBytes(profile), kKnownValueTypes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->machine, profile.machine);
}

TEST(ProfileBytes, EveryShorterTextIsRefused) {
  const std::string bytes = ProfileBytes(testing::SmallProfile().profile);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    ASSERT_FALSE(ProfileFrom(std::string_view(bytes).substr(0, size), kKnownValueTypes).ok())
        << size;
  EXPECT_FALSE(ProfileFrom(bytes + 'x', kKnownValueTypes).ok());
  EXPECT_FALSE(ProfileFrom(bytes, std::span(kKnownValueTypes).first(2)).ok())
      << "an unknown value type";
}

// Whatever the worker sends, the program can go through it.
TEST(ProfileBytes, WrongBytesAreRefusedOrHarmless) {
  const std::string bytes = ProfileBytes(testing::SmallProfile().profile);
  std::mt19937 random(4711);
  std::size_t taken = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string wrong = bytes;
    const std::uint32_t changes = 1 + random() % 3;
    for (std::uint32_t i = 0; i < changes; ++i) {
      const std::uint32_t byte = random() % 2 == 0 ? random() : random() % 4;
      wrong[random() % wrong.size()] = static_cast<char>(byte);
    }
    const absl::StatusOr<Profile> profile = ProfileFrom(wrong, kKnownValueTypes);
    if (!profile.ok()) continue;
    ++taken;
    for (std::size_t i = 0; i < profile->samples.size(); ++i) {
      ASSERT_EQ(profile->Values(i).size(), profile->value_types.size());
      ASSERT_LE(profile->Labels(i).labels().size(), bytes.size());
      for (std::uint32_t node = profile->samples[i].stack; node != 0;) {
        ASSERT_LT(profile->stacks[node].frame, profile->frames.size());
        ASSERT_LT(profile->stacks[node].parent, node);
        node = profile->stacks[node].parent;
      }
    }
  }
  EXPECT_GT(taken, 100U) << "the bytes get as far as a profile";
}

}  // namespace
}  // namespace strobe::internal
