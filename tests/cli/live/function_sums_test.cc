#include "../../../src/cli/live/function_sums.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/stack.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

Pattern Matching(const std::string& text) { return *Pattern::Parse(text); }

FilteredProfile Filtered(LoadedProfile loaded) {
  auto subject = MakeFilteredProfile(std::move(loaded), {});
  EXPECT_TRUE(subject.ok()) << subject.status();
  return *std::move(subject);
}

LabelSet Process(const char* name) { return LabelSet({{"process name", std::string(name)}}); }

FilteredProfile OfOnePeriod() {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.profile().default_value_type = 1;
  made.Add({"main", "Burn"}, {3, 30}, Process("one"));
  made.Add({"main", "Burn", "Burn"}, {2, 20}, Process("two"));
  made.Add({"main"}, {1, 10}, Process("one"));
  return Filtered(made.Finish());
}

// "function process self total".
std::vector<std::string> RowsOf(const FunctionSums& sums, bool by_total = false,
                                const char* pattern = "") {
  std::vector<std::string> rows;
  for (const std::uint32_t i : sums.Largest(by_total, Matching(pattern))) {
    const FunctionSums::Row& row = sums.rows()[i];
    rows.push_back(row.function + " " + row.process + " " + std::to_string(row.cost.self) + " " +
                   std::to_string(row.cost.total));
  }
  return rows;
}

TEST(FunctionSumsTest, AddsUpPeriods) {
  FunctionSums sums(false);
  sums.Add(OfOnePeriod());
  EXPECT_THAT(RowsOf(sums), ElementsAre("Burn  50 50", "main  10 60"));
  sums.Add(OfOnePeriod());
  EXPECT_THAT(RowsOf(sums, true), ElementsAre("main  20 120", "Burn  100 100"));
  EXPECT_EQ(sums.whole(), 120);
  EXPECT_EQ(sums.samples(), 12u);
  EXPECT_EQ(sums.lost(), 0u);
}

TEST(FunctionSumsTest, TellsProcessesApart) {
  FunctionSums sums(true);
  sums.Add(OfOnePeriod());
  EXPECT_THAT(RowsOf(sums),
              ElementsAre("Burn one 30 30", "Burn two 20 20", "main one 10 40", "main two 0 20"));
}

TEST(FunctionSumsTest, ShowsWhatMatches) {
  FunctionSums sums(false);
  sums.Add(OfOnePeriod());
  EXPECT_THAT(RowsOf(sums, false, "^B"), ElementsAre("Burn  50 50"));
}

TEST(FunctionSumsTest, MemoryIsBounded) {
  constexpr std::size_t kMaxBytes = 100'000;
  FunctionSums sums(false, kMaxBytes);
  constexpr int kFunctions = 10'000;
  for (int i = 0; i < kFunctions; ++i) {
    MadeProfile made;
    made.Add({"main", ("a" + std::to_string(i)).c_str(), ("b" + std::to_string(i)).c_str()}, {1});
    sums.Add(Filtered(made.Finish()));
  }
  EXPECT_LT(sums.rows().size(), kMaxBytes / sizeof(FunctionSums::Row));
  std::int64_t self = 0;
  for (const FunctionSums::Row& row : sums.rows()) self += row.cost.self;
  EXPECT_EQ(self, kFunctions) << "nothing is left out";
  const std::uint32_t largest = sums.Largest(false, Matching("other"))[0];
  EXPECT_EQ(sums.rows()[largest].function, FunctionSums::kOthers);
  EXPECT_LE(sums.rows()[largest].cost.total, kFunctions) << "a sample counts once";
}

TEST(FunctionSumsTest, SaysWhatIsLost) {
  MadeProfile made;
  made.Add({"main"}, {3});
  Profile& profile = made.profile();
  const std::uint32_t frame = made.Frame("lost");
  profile.frames[frame] = {static_cast<Address>(PseudoFrame::kLost), Frame::kPseudo};
  made.symbols().frames[frame] = {};
  made.Add({"lost"}, {2});
  FunctionSums sums(false);
  sums.Add(Filtered(made.Finish()));
  EXPECT_EQ(sums.samples(), 3u);
  EXPECT_EQ(sums.lost(), 2u);
}

}  // namespace
}  // namespace strobe::internal
