#include "../../../src/cli/live/live_view.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

const Printer kPlain{Terminal()};
constexpr std::int64_t kOneSecondNs = 1'000'000'000;

FilteredProfile Period(std::int64_t burn_samples, const LabelSet& labels = {}) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.profile().default_value_type = 1;
  const std::int64_t burn_ns = burn_samples * kOneSecondNs / 100;
  made.Add({"main", "Burn"}, {burn_samples, burn_ns}, labels);
  made.Add({"main", "Simmer"}, {10, kOneSecondNs / 10}, labels);
  auto subject = MakeFilteredProfile(made.Finish(), {});
  EXPECT_TRUE(subject.ok()) << subject.status();
  return *std::move(subject);
}

void Type(LiveView& view, const std::string& text) {
  for (const char c : text) {
    const Key key = c == '\r'     ? Key{Key::Kind::kEnter}
                    : c == '\033' ? Key{Key::Kind::kEscape}
                    : c == '\b'   ? Key{Key::Kind::kBackspace}
                                  : Key{Key::Kind::kCharacter, std::string(1, c)};
    EXPECT_TRUE(view.Press(key));
  }
}

std::vector<std::string> ScreenOf(const LiveView& view) { return view.Screen({}, kPlain); }

class LiveViewTest : public ::testing::Test {
 protected:
  LiveViewTest() { view_.Add(Period(30), 1); }

  LiveView view_{{.what = "busy 12"}};
};

TEST_F(LiveViewTest, ShowsTheLastPeriod) {
  EXPECT_THAT(ScreenOf(view_),
              ElementsAre("busy 12  0:00:01  40 samples  CPU 40.0 %",
                          "last period, by self   h: keys  q: end", "   self %  total %  function",
                          "     75.0     75.0  Burn", "     25.0     25.0  Simmer",
                          "      0.0    100.0  main"));
  view_.Add(Period(90), 0.5);
  EXPECT_THAT(ScreenOf(view_), AllOf(Contains("busy 12  0:00:01  100 samples  CPU 200.0 %"),
                                     Contains("     90.0     90.0  Burn")));
}

TEST_F(LiveViewTest, ShowsAllSinceTheBegin) {
  view_.Add(Period(70), 1);
  Type(view_, "t");
  EXPECT_THAT(ScreenOf(view_),
              AllOf(Contains("busy 12  0:00:02  120 samples  CPU 60.0 %"),
                    Contains(StartsWith("since the begin")), Contains("     83.3     83.3  Burn")));
}

TEST_F(LiveViewTest, SortsByTheTotal) {
  Type(view_, "s");
  EXPECT_THAT(ScreenOf(view_)[3], EndsWith("  main"));
  EXPECT_THAT(ScreenOf(view_)[1], HasSubstr("by total"));
}

TEST_F(LiveViewTest, APauseStopsTheTableAndNotTheSum) {
  Type(view_, "p");
  const std::vector<std::string> paused = ScreenOf(view_);
  EXPECT_THAT(paused[1], HasSubstr("paused"));
  view_.Add(Period(90), 1);
  EXPECT_EQ(ScreenOf(view_), paused);
  Type(view_, "s");
  EXPECT_THAT(ScreenOf(view_), Contains("     75.0     75.0  Burn")) << "it is sorted anew";
  Type(view_, " ");
  EXPECT_THAT(ScreenOf(view_),
              AllOf(Contains("     90.0     90.0  Burn"), Contains(HasSubstr("0:00:02"))));
}

TEST_F(LiveViewTest, FiltersFunctions) {
  Type(view_, "/Smi");
  EXPECT_EQ(ScreenOf(view_)[1], "/Smi_");
  Type(view_, "\b\bim.*r\r");
  EXPECT_THAT(ScreenOf(view_),
              AllOf(Contains("     25.0     25.0  Simmer"), Not(Contains(EndsWith("Burn")))))
      << "shares are of all";
  EXPECT_THAT(ScreenOf(view_)[1], HasSubstr("/Sim.*r/"));
  Type(view_, "/B\033");
  EXPECT_THAT(ScreenOf(view_)[1], HasSubstr("/Sim.*r/")) << "Esc leaves the one before";
  Type(view_, "\033");
  EXPECT_THAT(ScreenOf(view_), Contains(EndsWith("Burn")));
}

TEST_F(LiveViewTest, SaysWhatIsWrongWithAFilter) {
  Type(view_, "/(\r");
  EXPECT_THAT(ScreenOf(view_)[1], HasSubstr("regular expression"));
  EXPECT_THAT(ScreenOf(view_), Contains(EndsWith("Burn")));
  Type(view_, "s");
  EXPECT_THAT(ScreenOf(view_)[1], HasSubstr("by total"));
}

TEST_F(LiveViewTest, ListsItsKeys) {
  Type(view_, "h");
  EXPECT_THAT(ScreenOf(view_), AllOf(Contains(StartsWith("q,")), Not(Contains(EndsWith("Burn")))));
  Type(view_, "h");
  EXPECT_THAT(ScreenOf(view_), Contains(EndsWith("Burn")));
  EXPECT_FALSE(view_.Press({Key::Kind::kCharacter, "q"}));
}

TEST_F(LiveViewTest, WhatIsTypedIsNoCommand) {
  Type(view_, "/q");
  EXPECT_EQ(ScreenOf(view_)[1], "/q_");
}

TEST_F(LiveViewTest, FitsTheScreen) {
  for (const std::size_t rows : {1, 2, 3, 4, 5}) {
    const std::vector<std::string> lines = view_.Screen({.rows = rows, .columns = 12}, kPlain);
    EXPECT_THAT(lines, SizeIs(rows));
    EXPECT_EQ(lines[0], "busy 12  0:\u2026");
  }
  Type(view_, "h");
  EXPECT_THAT(view_.Screen({.rows = 4, .columns = 20}, kPlain), SizeIs(4));
}

TEST_F(LiveViewTest, ATableHasNothingOfKeys) {
  EXPECT_EQ(view_.Table(1, 0, kPlain),
            "busy 12  0:00:01  40 samples  CPU 40.0 %\n"
            "   self %  total %  function\n"
            "     75.0     75.0  Burn\n");
}

TEST_F(LiveViewTest, SaysTheLastPeriodAsJson) {
  view_.Add(Period(30), 1);
  EXPECT_EQ(view_.Json(1),
            "{\"seconds\":2,\"period_s\":1,\"type\":\"cpu\",\"unit\":\"nanoseconds\","
            "\"whole\":400000000,\"samples\":40,\"lost\":0,\"cpu_ns\":400000000,\"functions\":["
            "{\"function\":\"Burn\",\"self\":300000000,\"total\":300000000,\"self_share\":0.75,"
            "\"total_share\":0.75}]}\n");
}

TEST(LiveViewOfMachineTest, NamesTheProcess) {
  LiveView view({.what = "host", .by_process = true});
  view.Add(Period(30, LabelSet({{"process name", std::string("a-rather-long-name")}})), 1);
  EXPECT_THAT(ScreenOf(view), AllOf(Contains("   self %  total %  process           function"),
                                    Contains("     75.0     75.0  a-rather-long-n\u2026  Burn")));
  EXPECT_THAT(view.Json(1), HasSubstr("\"process\":\"a-rather-long-name\""));
}

TEST(LiveViewBeforeTheFirstPeriodTest, HasAHead) {
  EXPECT_THAT(ScreenOf(LiveView({.what = "busy 12"})), SizeIs(3));
}

}  // namespace
}  // namespace strobe::internal
