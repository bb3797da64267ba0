#include "../../../src/cli/compare/compare.h"

#include <cstdint>
#include <string>
#include <utility>

#include "../made_profile.h"
#include "../made_request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

FilteredProfile RunOf(std::int64_t parse, std::int64_t render, std::int64_t requests = 1,
                      const char* type = "cpu", double iterations = 0) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.profile().default_value_type = 1;
  made.profile().duration_ns = 2'000'000'000;
  for (std::int64_t i = 0; i < requests; ++i) {
    const LabelSet request({{"request", i}});
    made.Add({"main", "Parse"}, {parse / requests, parse / requests * 1'000'000}, request);
    made.Add({"main", "Render"}, {render / requests, render / requests * 1'000'000}, request);
  }
  LoadedProfile loaded = made.Finish();
  loaded.SetIterations(iterations);
  absl::StatusOr<FilteredProfile> subject =
      MakeFilteredProfile(std::move(loaded), With<&Request::type>(type));
  EXPECT_TRUE(subject.ok()) << subject.status();
  return *std::move(subject);
}

std::string DiffOf(const FilteredProfile& base, const FilteredProfile& now,
                   const Request& request = {}, bool is_beyond_limit = false) {
  const absl::StatusOr<DiffText> diff = DiffCommand(base, now, request, PlainPaper());
  if (!diff.ok()) return std::string(diff.status().message());
  EXPECT_EQ(diff->is_beyond_limit, is_beyond_limit) << diff->text;
  return diff->text;
}

TEST(DiffTest, AComparisonIsOfAmountsAndOfShares) {
  const std::string twice = DiffOf(RunOf(1000, 1000), RunOf(2000, 2000));
  EXPECT_THAT(twice, HasSubstr("the total (+100.0 %)"));
  EXPECT_THAT(twice, HasSubstr("+1.000 s \u00B1 54.791 ms"));
  EXPECT_THAT(twice, HasSubstr("50.0 %   50.0 %  Parse"));
  EXPECT_THAT(twice, HasSubstr("Significant: 2 of 2 functions, and the total."));
  const std::string one = DiffOf(RunOf(1000, 1000), RunOf(2000, 1000));
  EXPECT_THAT(one, HasSubstr("not significant   50.0 %   33.3 %  Render")) << "it is as it was";
  EXPECT_THAT(one, HasSubstr("Significant: 1 of 2 functions, and the total."));
  EXPECT_THAT(DiffOf(RunOf(1000, 1000), RunOf(1000, 1000)),
              HasSubstr("Significant: 0 of 2 functions, not the total."));
  EXPECT_THAT(DiffOf(RunOf(1000, 1000), RunOf(1000, 1000, 1, "samples")), HasSubstr("--type"));
}

TEST(DiffTest, AComparisonIsPerUnitOfWork) {
  const FilteredProfile base = RunOf(1000, 1000, 10), now = RunOf(2000, 2000, 20);
  for (const char* const unit : {"request", "samples"}) {
    EXPECT_THAT(DiffOf(base, now, With<&Request::per>(unit)), HasSubstr("the total (+0.0 %)"))
        << unit;
  }
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("request")), HasSubstr("200.000 ms"));
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("seconds")), HasSubstr("1.000 s"));
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("1000")), HasSubstr("2.000 ms"));
  EXPECT_THAT(DiffOf(RunOf(1000, 1000, 1, "cpu", 10), RunOf(2000, 2000, 1, "cpu", 20),
                     With<&Request::per>("iterations")),
              HasSubstr("the total (+0.0 %)"));
  for (const char* const unit : {"tenant", "0", "-1", "iterations"})
    EXPECT_THAT(DiffOf(base, now, With<&Request::per>(unit)), HasSubstr("not both profiles"))
        << unit;
}

TEST(DiffTest, AComparisonFailsBeyondALimit) {
  const auto with = [](const char* limit) {
    Request request;
    request.limits.push_back(*ChangeLimit::Parse(limit));
    return request;
  };
  const FilteredProfile base = RunOf(1000, 1000), now = RunOf(1300, 1000);
  EXPECT_THAT(DiffOf(base, now, with("+10%"), true),
              HasSubstr("Beyond the limit: the total, Parse"));
  EXPECT_THAT(DiffOf(base, now, with("+20%"), false), Not(HasSubstr("Beyond")));
  EXPECT_THAT(DiffOf(base, now, with("-10%"), false), Not(HasSubstr("Beyond")));
  EXPECT_THAT(DiffOf(now, base, with("-10%"), true), HasSubstr("Parse"));
  EXPECT_THAT(DiffOf(base, now, with("3sigma"), true), HasSubstr("Parse"));
  EXPECT_THAT(DiffOf(base, RunOf(1050, 1000), with("+1%"), false), Not(HasSubstr("Beyond")))
      << "it may be chance";
}

Changes Between(const FilteredProfile& base, const FilteredProfile& now) {
  return Changes(*Side::Of(base, ""), *Side::Of(now, ""), false);
}
CiText CiOf(CiSubject subject, const Request& request = {}) {
  absl::StatusOr<CiText> text = CiCommand(std::move(subject), request);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *std::move(text) : CiText();
}
NamedChanges Named(const std::string& name, Changes changes) {
  return {.name = name, .unit = "nanoseconds", .changes = std::move(changes)};
}

TEST(CiTest, ATableHasWhatIsSlowerFirst) {
  CiSubject subject;
  subject.profiles.push_back(Named("BM_Slower", Between(RunOf(1000, 1000), RunOf(2000, 1000))));
  subject.profiles.push_back(Named("BM_Faster", Between(RunOf(1000, 3000), RunOf(1000, 100))));
  subject.profiles.push_back(Named("BM_Same", Between(RunOf(1000, 1000), RunOf(1010, 1000))));
  const CiText text = CiOf(std::move(subject));
  EXPECT_TRUE(text.has_regression);
  EXPECT_THAT(text.text, HasSubstr("### Strobe: 2 regressions, 2 improvements in 3 profiles\n"));
  EXPECT_THAT(text.text, HasSubstr("| `BM_Slower` | `Parse` | 1.000 s | 2.000 s | "
                                   "+1.000 s \u00B1 54.791 ms | +50.0 % |\n"));
  EXPECT_THAT(text.text, HasSubstr("| `BM_Slower` | **the total** | 2.000 s | 3.000 s |"));
  EXPECT_LT(text.text.find("BM_Slower"), text.text.find("BM_Faster"));
  EXPECT_THAT(text.text, Not(HasSubstr("BM_Same")));
  EXPECT_THAT(text.text, HasSubstr("Compared: 3 profiles, 9 amounts."));
}

TEST(CiTest, WithoutASlowerFunctionThereIsNoRegression) {
  CiSubject faster;
  faster.profiles.push_back(Named("", Between(RunOf(1000, 3000), RunOf(1000, 100))));
  const CiText text = CiOf(std::move(faster));
  EXPECT_FALSE(text.has_regression);
  EXPECT_THAT(text.text, HasSubstr("### Strobe: 2 improvements in 1 profile\n"));
  CiSubject same;
  same.profiles.push_back(Named("", Between(RunOf(1000, 1000), RunOf(1010, 1000))));
  EXPECT_THAT(CiOf(std::move(same)).text, HasSubstr("no significant change in 1 profile\n"));
}

TEST(CiTest, ASmallChangeIsLeftOutHoweverSureItIs) {
  Request request;
  for (const double least : {1.0, 5.0}) {
    CiSubject subject;
    subject.profiles.push_back(Named("", Between(RunOf(1'000'000, 0), RunOf(1'030'000, 0))));
    request.min_percent = least;
    EXPECT_EQ(CiOf(std::move(subject), request).has_regression, least < 3) << least;
  }
}

TEST(CiTest, NamesDoNotBreakTheTable) {
  MadeProfile base({{"samples", "count"}}), now({{"samples", "count"}});
  base.Add({"operator|`"}, {1000});
  now.Add({"operator|`"}, {2000});
  CiSubject subject;
  subject.profiles.push_back(Named("", Between(*MakeFilteredProfile(base.Finish(), {}),
                                               *MakeFilteredProfile(now.Finish(), {}))));
  EXPECT_THAT(CiOf(std::move(subject)).text, HasSubstr("| `operator\\|'` |"));
}

TEST(CiTest, WhatIsNotComparedIsNamed) {
  CiSubject subject;
  subject.profiles.push_back(Named("BM_Same", Between(RunOf(1000, 1000), RunOf(1010, 1000))));
  subject.profiles.push_back(Named("BM_Empty", Between(RunOf(0, 0), RunOf(0, 0))));
  subject.only_base = {"BM_Old"};
  for (int i = 0; i < 12; ++i) subject.only_now.push_back("BM_" + std::to_string(i));
  const CiText text = CiOf(std::move(subject));
  EXPECT_THAT(text.text, HasSubstr("Only in the base: `BM_Old`."));
  EXPECT_THAT(text.text, HasSubstr("`BM_9` and 2 more."));
  EXPECT_THAT(text.text, HasSubstr("Not judged, for want of samples: `BM_Empty`."));
}

TEST(CiTest, WhatHadNoSampleIsJudged) {
  CiSubject slower;
  slower.profiles.push_back(Named("BM_A", Between(RunOf(0, 0), RunOf(1000, 1000))));
  const CiText text = CiOf(std::move(slower));
  EXPECT_TRUE(text.has_regression);
  EXPECT_THAT(text.text, HasSubstr("| `BM_A` | `Parse` | 0 ns | 1.000 s |"));
  CiSubject faster;
  faster.profiles.push_back(Named("BM_A", Between(RunOf(1000, 1000), RunOf(0, 0))));
  EXPECT_FALSE(CiOf(std::move(faster)).has_regression);
  CiSubject chance;
  chance.profiles.push_back(Named("BM_A", Between(RunOf(0, 0), RunOf(1, 1))));
  EXPECT_FALSE(CiOf(std::move(chance)).has_regression) << "two samples";
}

TEST(CiTest, WithoutErrorsNothingIsJudged) {
  MadeProfile heap({{"inuse_space", "bytes"}});
  heap.Add({"Keep"}, {1000});
  const FilteredProfile profile = *MakeFilteredProfile(heap.Finish(), {});
  CiSubject subject;
  subject.profiles.push_back(Named("", Between(profile, profile)));
  EXPECT_EQ(CiCommand(std::move(subject), {}).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(CiTest, RowsAreLimited) {
  Request request;
  request.rows = 1;
  CiSubject subject;
  subject.profiles.push_back(Named("", Between(RunOf(1000, 1000), RunOf(2000, 2000))));
  EXPECT_THAT(CiOf(std::move(subject), request).text, HasSubstr("2 more rows (`-n 0` prints all)"));
}

}  // namespace
}  // namespace strobe::internal
