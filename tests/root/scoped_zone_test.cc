#include "strobe/scoped_zone.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

namespace strobe {
namespace {

std::string Path() { return CurrentLabels().set().Text(kZoneLabel); }

TEST(ScopedZone, ZonesNestAndTheOuterOnesComeBack) {
  EXPECT_EQ(Path(), "");
  {
    const ScopedZone request("request");
    EXPECT_EQ(Path(), "request");
    {
      const ScopedZone parse("parse");
      EXPECT_EQ(Path(), "request;parse");
    }
    const ScopedZone reply("reply");
    EXPECT_EQ(Path(), "request;reply");
  }
  EXPECT_EQ(CurrentLabels(), Labels());
}

TEST(ScopedZone, LabelsAndZonesKeepEachOther) {
  const ScopedLabels labels({{"endpoint", "/pay"}});
  const ScopedZone request("request");
  const ScopedLabels more({{"shard", 7}});
  const ScopedZone parse("parse");
  EXPECT_EQ(CurrentLabels().set(), LabelSet({{"endpoint", "/pay"},
                                             {"shard", std::int64_t{7}},
                                             {std::string(kZoneLabel), "request;parse"}}));
}

TEST(ScopedZone, TheSameZonesAreTheSameLabels) {
  const auto make = [] {
    const ScopedZone outer("outer");
    const std::string text = "inner";
    const ScopedZone inner(ZoneName::Of(text));
    return CurrentLabels();
  };
  EXPECT_EQ(make(), make());
  const ScopedZone inner("inner");
  EXPECT_NE(make(), CurrentLabels());
}

TEST(ScopedZone, AnotherThreadTakesItOverByValue) {
  const ScopedZone zone("request");
  std::thread([saved = CurrentLabels()] {
    EXPECT_EQ(Path(), "");
    const ScopedLabels taken(saved);
    const ScopedZone parse("parse");
    EXPECT_EQ(Path(), "request;parse");
  }).join();
}

void Recurse(int depth, std::vector<Labels>& seen) {
  const ScopedZone zone("recursion");
  seen.push_back(CurrentLabels());
  if (depth > 1) Recurse(depth - 1, seen);
}

TEST(ScopedZone, ARecursionTakesALimitedNumberOfSets) {
  std::vector<Labels> seen;
  Recurse(1000, seen);
  const Labels& over = seen[kMaxZones];
  EXPECT_TRUE(IsOverZoneLimit(over.set().Text(kZoneLabel)));
  EXPECT_FALSE(IsOverZoneLimit(seen[kMaxZones - 1].set().Text(kZoneLabel)));
  for (std::size_t i = kMaxZones; i < seen.size(); ++i) ASSERT_EQ(seen[i], over) << i;
  EXPECT_EQ(CurrentLabels(), Labels());
}

}  // namespace
}  // namespace strobe
