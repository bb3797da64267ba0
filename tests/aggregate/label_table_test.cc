#include "strobe/aggregate/label_table.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "strobe/testing/latch.h"

namespace strobe {
namespace {

LabelSet Request(std::int64_t number) { return LabelSet({{"request", number}}); }

// The table whose sets a test's other table takes, and what it has told.
LabelTable* source_table = nullptr;
std::map<std::uint64_t, LabelSet> told;

void Note(std::uint64_t number, const LabelSet& set) noexcept { told[number] = set; }
std::optional<LabelSet> FromTable(std::uint64_t number) {
  return told.contains(number) ? std::optional((*source_table)[number]) : std::nullopt;
}

TEST(LabelTable, EqualSetsHaveOneNumber) {
  LabelTable table;
  EXPECT_EQ(table.Intern({}), kNoContext);
  const std::uint64_t seven = table.Intern({{"request", 7}});
  const std::uint64_t eight = table.Intern({{"request", 8}});
  EXPECT_NE(seven, eight);
  EXPECT_EQ(table.Intern({{"request", 7}}), seven);
  EXPECT_EQ(table[seven], Request(7));
  EXPECT_EQ(table[eight], Request(8));
  EXPECT_TRUE(table[kNoContext].empty());
  EXPECT_NE(table.Intern({{"request", "7"}}), seven) << "a text is not a number";
}

TEST(LabelTable, ASetIsBuiltOnAnother) {
  LabelTable table;
  const std::uint64_t base = table.Intern({{"a", 1}, {"b", 2}});
  const std::array labels = {LabelView("b", "inner"), LabelView("b", "ignored")};
  const std::uint64_t both = table.Intern(base, labels);
  EXPECT_EQ(table[both], LabelSet({{"a", std::int64_t{1}}, {"b", "inner"}}));
  EXPECT_EQ(table.Intern(base, labels), both);
  EXPECT_EQ(table.Intern(base, {}), base);
}

TEST(LabelTable, LongAndBadTextsAreCutAndRepaired) {
  LabelTable table;
  const std::string key(1000, 'k');
  const std::string text = std::string(LabelSet::kMaxTextBytes - 1, 'v') + "\xC3\xA4 and more";
  const std::uint64_t number = table.Intern({{key, text}, {"bad\xFF", "\x80\n"}});
  EXPECT_EQ(table[number], LabelSet({{std::string(LabelSet::kMaxKeyBytes, 'k'),
                                      std::string(LabelSet::kMaxTextBytes - 1, 'v')},
                                     {"bad?", "? "}}));
  EXPECT_EQ(table.Intern({{key, text}, {"bad\xFF", "\x80\n"}}), number);
}

TEST(LabelTable, SetsBeyondTheLimitAndUnknownNumbersHaveTheOverflowSet) {
  LabelTable table(std::size_t{16} << 10);
  std::int64_t i = 0;
  while (table.Intern({{"request", i}}) != kOverflowContext && i < 10'000) ++i;
  EXPECT_GT(i, 10);
  EXPECT_LT(i, 1000);
  EXPECT_EQ(table.refused(), 1u);
  EXPECT_NE(table.Intern({{"request", 0}}), kOverflowContext) << "what has a number keeps it";
  EXPECT_EQ(table[kOverflowContext].Text("labels"), "[labels over limit]");
  EXPECT_EQ(table[~std::uint64_t{0}], table[kOverflowContext]) << "a forged number";
  EXPECT_EQ(table[std::uint64_t{1} << 32], table[kOverflowContext]);
}

TEST(LabelTable, TheNumberOfSetsHasALimit) {
  LabelTable table(std::size_t{1} << 30);
  for (std::size_t i = 0; i < LabelTable::kMaxSets; ++i)
    ASSERT_NE(table.Intern({{"i", i}}), kOverflowContext);
  EXPECT_EQ(table.Intern({{"i", -1}}), kOverflowContext);
  EXPECT_EQ(table[table.Intern({{"i", 12345}})].Number("i"), 12345);
}

TEST(LabelTable, ThreadsThatInternAtOnceReadWhatEachMeant) {
  LabelTable table;
  constexpr int kThreads = 4;
  constexpr int kSets = 500;
  testing::Latch ready(kThreads);
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      ready.count_down();
      ready.wait();
      for (int i = 0; i < kSets; ++i) {
        const std::uint64_t number = table.Intern({{"i", i}, {"text", std::to_string(i)}});
        EXPECT_EQ(table[number].Number("i"), i);
        EXPECT_EQ(table[number].Text("text"), std::to_string(i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(LabelTable, TellsOfEachSet) {
  LabelTable table;
  told.clear();
  const std::uint64_t before = table.Intern({{"request", 1}});
  table.Tell(&Note);
  const std::uint64_t after = table.Intern({{"request", 2}});
  EXPECT_EQ(table.Intern({{"request", 1}}), before);
  table.Tell(nullptr);
  table.Intern({{"request", 3}});
  EXPECT_EQ(told, (std::map<std::uint64_t, LabelSet>{{before, Request(1)}, {after, Request(2)}}));
}

TEST(LabelTable, TakesTheSetsOfASource) {
  LabelTable source;
  source_table = &source;
  told.clear();
  source.Tell(&Note);
  LabelTable table(&FromTable);
  const std::uint64_t number = source.Intern({{"request", 7}});
  EXPECT_EQ(table[number], Request(7));
  EXPECT_EQ(&table[number], &table[number]) << "asked for once";
  EXPECT_EQ(table[number + 1], table[kOverflowContext]);
  EXPECT_EQ(source.Intern({{"request", 8}}), number + 1);
  EXPECT_EQ(table[number + 1], Request(8)) << "a set that came later";
  EXPECT_EQ(table.Intern({{"request", 7}}), kOverflowContext);
}

TEST(LabelTable, TheSetsOfASourceHaveTheLimit) {
  LabelTable source;
  source_table = &source;
  told.clear();
  source.Tell(&Note);
  LabelTable table(&FromTable, std::size_t{16} << 10);
  int taken = 0;
  for (std::int64_t i = 0; i < 1000; ++i)
    taken += table[source.Intern({{"request", i}})] == Request(i) ? 1 : 0;
  EXPECT_GT(taken, 10);
  EXPECT_LT(taken, 500);
}

TEST(LabelTable, TheProcessHasOneTable) {
  EXPECT_EQ(&ProcessLabels(), &ProcessLabels());
  const std::uint64_t number = ProcessLabels().Intern({{"request", 7}});
  EXPECT_EQ(ProcessLabels()[number], Request(7));
}

}  // namespace
}  // namespace strobe
