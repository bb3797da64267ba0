#include "strobe/core/zone.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace strobe {
namespace {

using Zones = std::vector<std::pair<std::string, std::string>>;

Zones ZonesOf(std::string_view path) {
  Zones zones;
  VisitZones(path, [&](std::string_view name, std::string_view down_to) {
    zones.emplace_back(name, down_to);
  });
  return zones;
}

TEST(ZoneName, ALiteralAndATextHaveOneHash) {
  constexpr ZoneName kParse("parse");
  EXPECT_EQ(kParse.text(), "parse");
  EXPECT_EQ(ZoneName::Of(std::string("parse")).hash(), kParse.hash());
  EXPECT_NE(ZoneName("lex").hash(), kParse.hash());
}

TEST(ZoneName, ATextIsCut) {
  EXPECT_EQ(ZoneName::Of(std::string(1000, 'n')).text(), std::string(ZoneName::kMaxBytes, 'n'));
  EXPECT_EQ(ZoneName::Of(std::string_view("a\0b", 3)).text(), "a");
}

TEST(ZonePath, HasTheZonesInTheirOrder) {
  const std::string path = ZonePath(ZonePath(ZonePath("", "request"), "parse"), "a;b");
  EXPECT_EQ(path, "request;parse;a:b");
  EXPECT_EQ(
      ZonesOf(path),
      (Zones{{"request", "request"}, {"parse", "request;parse"}, {"a:b", "request;parse;a:b"}}));
  EXPECT_TRUE(ZonesOf("").empty());
}

TEST(ZonePath, OneThatIsNestedTooDeepSaysSo) {
  std::string path;
  for (std::size_t i = 0; i < kMaxZones; ++i) path = ZonePath(path, "z");
  EXPECT_EQ(ZonesOf(path).size(), kMaxZones);
  EXPECT_FALSE(IsOverZoneLimit(path));
  const std::string over = ZonePath(path, "deeper");
  EXPECT_EQ(over, path + ";[zones over limit]");
  EXPECT_EQ(ZonePath(over, "deepest"), over);
}

TEST(ZonePath, OneThatIsTooLongSaysSoWithinTheLimitOfALabel) {
  const std::string name(ZoneName::kMaxBytes, 'n');
  std::string path;
  for (int i = 0; i < 10; ++i) path = ZonePath(path, name);
  EXPECT_EQ(path, name + ";" + name + ";" + name + ";[zones over limit]");
  EXPECT_LE(path.size(), LabelSet::kMaxTextBytes);
}

}  // namespace
}  // namespace strobe
