#include "strobe/scoped_labels.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>
#include <vector>

namespace strobe {
namespace {

LabelSet Set(std::vector<Label> labels) { return LabelSet(std::move(labels)); }

TEST(ScopedLabels, InnerScopesWinAndOuterOnesComeBack) {
  EXPECT_EQ(CurrentLabels(), Labels());
  {
    const ScopedLabels outer({{"endpoint", "/pay"}, {"shard", 7}});
    EXPECT_EQ(CurrentLabels().set(), Set({{"endpoint", "/pay"}, {"shard", std::int64_t{7}}}));
    {
      const ScopedLabels inner({{"endpoint", std::string("/cancel")}, {"step", 2U}});
      EXPECT_EQ(
          CurrentLabels().set(),
          Set({{"endpoint", "/cancel"}, {"shard", std::int64_t{7}}, {"step", std::int64_t{2}}}));
    }
    EXPECT_EQ(CurrentLabels().set(), Set({{"endpoint", "/pay"}, {"shard", std::int64_t{7}}}));
    const ScopedLabels none{Labels()};
    EXPECT_TRUE(CurrentLabels().set().empty());
  }
  EXPECT_EQ(CurrentLabels(), Labels());
}

TEST(ScopedLabels, AnotherThreadTakesThemOverByValue) {
  const ScopedLabels labels({{"endpoint", "/pay"}});
  const Labels saved = CurrentLabels();
  std::thread([saved] {
    EXPECT_EQ(CurrentLabels(), Labels()) << "a thread begins without labels";
    const ScopedLabels taken(saved);
    EXPECT_EQ(CurrentLabels().set().Text("endpoint"), "/pay");
  }).join();
}

TEST(ScopedLabels, ExchangeReturnsTheLabelsBefore) {
  const Labels first = Labels::Of({{"a", 1}});
  EXPECT_EQ(ExchangeLabels(first), Labels());
  EXPECT_EQ(ExchangeLabels({}), first);
  EXPECT_EQ(CurrentLabels(), Labels());
}

TEST(ScopedLabels, EqualLabelsAreEqualValues) {
  const auto make = [] { return Labels::Of({{"a", 1}, {"b", "x"}}); };
  EXPECT_EQ(make(), make());
  EXPECT_NE(make(), Labels::Of({{"a", 2}, {"b", "x"}}));
}

TEST(ScopedLabels, TheInnerScopeKeepsItsLabelsWhereASetIsFull) {
  std::vector<std::string> keys;
  for (char c = 'a'; c < 'a' + 20; ++c) keys.emplace_back(1, c);
  std::vector<LabelView> views;
  for (const std::string& key : keys) views.emplace_back(key, 1);
  const ScopedLabels full(Labels::Of(views, {}));
  EXPECT_EQ(CurrentLabels().set().labels().size(), LabelSet::kMaxLabels);
  const ScopedLabels inner({{"z", 2}});
  EXPECT_EQ(CurrentLabels().set().labels().size(), LabelSet::kMaxLabels);
  EXPECT_EQ(CurrentLabels().set().Number("z"), 2);
}

}  // namespace
}  // namespace strobe
