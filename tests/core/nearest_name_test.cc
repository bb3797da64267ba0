#include "strobe/core/settings/nearest_name.h"

#include <array>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constexpr std::array<std::string_view, 5> kNames{"CPU_FREQUENCY_HZ", "WALL_FREQUENCY_HZ", "top",
                                                 "tree", "MAX_FRAMES"};

std::string Nearest(std::string_view name) { return std::string(NearestName(name, kNames)); }

TEST(NearestName, AnAbbreviationLeavesLettersOut) {
  EXPECT_EQ(Nearest("CPU_FREQUENCY"), "CPU_FREQUENCY_HZ");
  EXPECT_EQ(Nearest("FREQ"), "CPU_FREQUENCY_HZ");
  EXPECT_EQ(Nearest("WALL_HZ"), "WALL_FREQUENCY_HZ");
}

TEST(NearestName, AMisspellingHasFewWrongLetters) {
  EXPECT_EQ(Nearest("tpo"), "top");
  EXPECT_EQ(Nearest("tre"), "tree");
  EXPECT_EQ(Nearest("MAX_FRAMS"), "MAX_FRAMES");
  EXPECT_EQ(Nearest("MAX_FRAME_"), "MAX_FRAMES");
  EXPECT_EQ(Nearest("WALL_FREQENCY_HZ"), "WALL_FREQUENCY_HZ");
}

TEST(NearestName, OfSeveralTheCheapestAndThenTheFirst) {
  EXPECT_EQ(Nearest("t"), "top");
  EXPECT_EQ(Nearest("FREQUENCY"), "CPU_FREQUENCY_HZ");
  constexpr std::array<std::string_view, 2> kEqual{"aXc", "aYc"};
  EXPECT_EQ(NearestName("ac", kEqual), "aXc");
}

TEST(NearestName, AnExactNameIsNearest) {
  for (const std::string_view name : kNames) EXPECT_EQ(Nearest(name), name);
}

TEST(NearestName, WhatIsNearNoneHasNone) {
  EXPECT_EQ(Nearest(""), "");
  EXPECT_EQ(Nearest("xyz"), "");
  EXPECT_EQ(Nearest("profile.pb.gz"), "");
  EXPECT_EQ(Nearest(std::string(10'000, 't')), "");
  EXPECT_EQ(std::string(NearestName("top", {})), "");
}

}  // namespace
}  // namespace strobe::internal
