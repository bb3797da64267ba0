#include "strobe/core/label_set.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace strobe {
namespace {

TEST(LabelSet, EqualLabelsAreEqualSetsInAnyOrder) {
  const LabelSet set({{"user", std::string("ann")}, {"request", std::int64_t{7}}});
  EXPECT_EQ(set, LabelSet({{"request", std::int64_t{7}}, {"user", std::string("ann")}}));
  EXPECT_NE(set, LabelSet({{"request", std::int64_t{8}}, {"user", std::string("ann")}}));
  EXPECT_NE(set, LabelSet({{"request", std::string("7")}, {"user", std::string("ann")}}));
  EXPECT_EQ(set.Text("user"), "ann");
  EXPECT_EQ(set.Number("request"), 7);
  EXPECT_EQ(set.Text("request"), "") << "a number is no text";
  EXPECT_EQ(set.Number("missing"), 0);
}

TEST(LabelSet, IsBounded) {
  std::vector<Label> labels;
  for (std::int64_t i = 0; i < 100; ++i) labels.push_back({"key " + std::to_string(i), i});
  EXPECT_EQ(LabelSet(labels).labels().size(), LabelSet::kMaxLabels);
  const LabelSet set({{std::string(1000, 'k'), std::string(1000, 't')}, {"bad", "a\xFF\n"}});
  EXPECT_EQ(set.Text(std::string(LabelSet::kMaxKeyBytes, 'k')),
            std::string(LabelSet::kMaxTextBytes, 't'));
  EXPECT_EQ(set.Text("bad"), "a? ");
}

TEST(LabelSet, TwoSetsHaveEqualLabelsInCommon) {
  const LabelSet set({{"a", std::int64_t{1}}, {"b", std::int64_t{2}}, {"c", std::string("x")}});
  const LabelSet other({{"b", std::int64_t{3}}, {"c", std::string("x")}, {"d", std::int64_t{1}}});
  EXPECT_EQ(set.InCommonWith(other).labels().size(), 1u);
  EXPECT_EQ(set.InCommonWith(other).Text("c"), "x");
  EXPECT_TRUE(set.InCommonWith(LabelSet()).empty());
  ASSERT_NE(set.Find("b"), nullptr);
  EXPECT_EQ(set.Find("d"), nullptr);
}

TEST(LabelSet, HasOneLabelAKeyAndTheFirstCounts) {
  const LabelSet set({{"a", std::int64_t{1}}, {"b", std::int64_t{2}}, {"a", std::int64_t{3}}});
  EXPECT_EQ(set.labels().size(), 2u);
  EXPECT_EQ(set.Number("a"), 1);
  const LabelSet joined = set.Joined(LabelSet({{"a", std::int64_t{4}}, {"c", std::int64_t{5}}}));
  EXPECT_EQ(joined,
            LabelSet({{"a", std::int64_t{1}}, {"b", std::int64_t{2}}, {"c", std::int64_t{5}}}));
}

TEST(LabelSet, OfAFileMayHaveMore) {
  std::vector<Label> labels;
  for (int i = 0; i < 40; ++i) labels.push_back({"key " + std::to_string(i), std::int64_t{i}});
  labels.push_back({"key 7", std::string(1000, 't')});
  const LabelSet set(labels, {.labels = 100, .text_bytes = 2000, .keeps_values = true});
  EXPECT_EQ(set.labels().size(), 41u);
  EXPECT_EQ(set.Number("key 39"), 39);
  EXPECT_EQ(set.Number("key 7"), 7) << "the first value";
  EXPECT_EQ(LabelSet(labels, {.labels = 3}).labels().size(), 3u);
}

TEST(LabelSet, OfAThreadHasItsIdAndItsNameIfItHasOne) {
  EXPECT_EQ(ThreadLabels(42, "worker").Number(kThreadIdLabel), 42);
  EXPECT_EQ(ThreadLabels(42, "worker").Text(kThreadNameLabel), "worker");
  EXPECT_EQ(ThreadLabels(42, "").labels().size(), 1u);
}

}  // namespace
}  // namespace strobe
