#include "../../../src/cli/commands/command.h"

#include <string>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const Printer& PlainPaper() {
  static const Printer printer{Terminal()};
  return printer;
}

template <std::string Request::*kField>
Request With(const std::string& text) {
  Request request;
  request.*kField = text;
  return request;
}

LoadedProfile ProfileOfTwo() {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.profile().default_value_type = 1;
  made.Add({"main", "Parse"}, {3, 30'000'000});
  made.Add({"main", "Write"}, {1, 10'000'000});
  return made.Finish();
}
FilteredProfile SubjectOf(const Request& request) {
  absl::StatusOr<FilteredProfile> subject = MakeFilteredProfile(ProfileOfTwo(), request);
  EXPECT_TRUE(subject.ok()) << subject.status();
  return *std::move(subject);
}

TEST(CommandTest, ASubjectHasTheColumnThatIsAskedFor) {
  EXPECT_EQ(SubjectOf({}).sum, 40'000'000) << "the profile's default";
  const FilteredProfile samples = SubjectOf(With<&Request::type>("samples"));
  EXPECT_EQ(samples.sum, 4);
  EXPECT_EQ(samples.type().unit, "count");
  const auto wrong = MakeFilteredProfile(ProfileOfTwo(), With<&Request::type>("wall"));
  ASSERT_FALSE(wrong.ok());
  EXPECT_THAT(std::string(wrong.status().message()), HasSubstr("samples cpu")) << "what it has";
}

TEST(CommandTest, ASubjectIsFiltered) {
  Request request = With<&Request::type>("samples");
  request.filter.focus = "Parse";
  EXPECT_EQ(SubjectOf(request).sum, 3);
  request.filter.focus = "(";
  EXPECT_EQ(MakeFilteredProfile(ProfileOfTwo(), request).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(CommandTest, TablesNameTheFunctions) {
  const FilteredProfile subject = SubjectOf({});
  EXPECT_THAT(Heading(subject, PlainPaper()), HasSubstr("cpu"));
  for (const auto command : {&TopCommand, &TreeCommand}) {
    const Text text = command(subject, {}, PlainPaper());
    ASSERT_TRUE(text.ok()) << text.status();
    EXPECT_THAT(*text, HasSubstr("Parse"));
    EXPECT_THAT(*text, HasSubstr("Write"));
  }
  Request one_row;
  one_row.rows = 1;
  const Text top = TopCommand(subject, one_row, PlainPaper());
  EXPECT_THAT(*top, HasSubstr("Parse"));
  EXPECT_THAT(*top, Not(HasSubstr("Write")));
  const Text peek = PeekCommand(subject, With<&Request::pattern>("Parse"), PlainPaper());
  EXPECT_THAT(*peek, HasSubstr("main")) << "its caller";
  EXPECT_THAT(*InfoCommand(subject, {}, PlainPaper()), HasSubstr("samples"));
}

TEST(CommandTest, NegativeAmountsSortBySizeAndHaveSharesOfSizes) {
  MadeProfile made({{"inuse_space", "bytes"}});
  made.Add({"main", "Freed"}, {-3000});
  made.Add({"main", "Grown"}, {1000});
  Request one_row;
  one_row.rows = 1;
  const auto subject = MakeFilteredProfile(made.Finish(), one_row);
  ASSERT_TRUE(subject.ok());
  EXPECT_EQ(subject->sum, -2000);
  EXPECT_EQ(subject->whole, 4000);
  const Text top = TopCommand(*subject, one_row, PlainPaper());
  EXPECT_THAT(*top, HasSubstr("Freed"));
  EXPECT_THAT(*top, HasSubstr("-75.0 %"));
  EXPECT_THAT(*top, Not(HasSubstr("Grown")));
}

FilteredProfile RunOf(std::int64_t parse, std::int64_t render, std::int64_t requests = 1) {
  MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
  made.profile().default_value_type = 1;
  made.profile().duration_ns = 2'000'000'000;
  for (std::int64_t i = 0; i < requests; ++i) {
    const LabelSet request({{"request", i}});
    made.Add({"main", "Parse"}, {parse / requests, parse / requests * 1'000'000}, request);
    made.Add({"main", "Render"}, {render / requests, render / requests * 1'000'000}, request);
  }
  absl::StatusOr<FilteredProfile> subject = MakeFilteredProfile(made.Finish(), {});
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

TEST(CommandTest, AComparisonIsOfAmountsAndOfShares) {
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
  EXPECT_THAT(std::string(DiffCommand(SubjectOf({}), SubjectOf(With<&Request::type>("samples")), {},
                                      PlainPaper())
                              .status()
                              .message()),
              HasSubstr("--type"));
}

TEST(CommandTest, AComparisonIsPerUnitOfWork) {
  const FilteredProfile base = RunOf(1000, 1000, 10), now = RunOf(2000, 2000, 20);
  for (const char* const unit : {"request", "samples"}) {
    EXPECT_THAT(DiffOf(base, now, With<&Request::per>(unit)), HasSubstr("the total (+0.0 %)"))
        << unit;
  }
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("request")), HasSubstr("200.000 ms"));
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("seconds")), HasSubstr("1.000 s"));
  EXPECT_THAT(DiffOf(base, now, With<&Request::per>("1000")), HasSubstr("2.000 ms"));
  for (const char* const unit : {"tenant", "0", "-1"})
    EXPECT_THAT(DiffOf(base, now, With<&Request::per>(unit)), HasSubstr("not both profiles"))
        << unit;
}

TEST(CommandTest, AComparisonFailsBeyondALimit) {
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

TEST(CommandTest, EveryFormatIsWrittenAndFoundByItsName) {
  for (const Format& format : Formats()) {
    const Text bytes = EncodeAs(format.name, ProfileOfTwo(), {});
    ASSERT_TRUE(bytes.ok()) << format.name << bytes.status();
    EXPECT_FALSE(bytes->empty()) << format.name;
    EXPECT_EQ(*FormatOf(With<&Request::format>(format.name)), format.name);
    EXPECT_NE(FormatNames().find(format.name), std::string::npos);
    for (const char* suffix : format.suffixes) {
      if (suffix == nullptr) continue;
      EXPECT_EQ(*FormatOf(With<&Request::output>(std::string("a") + suffix)), format.name);
    }
    EXPECT_THAT(std::string(FormatOf(With<&Request::output>("a.unknown")).status().message()),
                ::testing::HasSubstr(format.suffixes.front()));
  }
  EXPECT_EQ(*FormatOf(With<&Request::output>("-")), Formats().front().name);
  EXPECT_FALSE(EncodeAs("unknown", ProfileOfTwo(), {}).ok());
}

TEST(CommandTest, WhatAFilterHasLeftOutIsNotWritten) {
  Request request;
  request.filter.focus = "Parse";
  const FilteredProfile subject = SubjectOf(request);
  const Text text = EncodeWhatIsLeft("folded", subject.loaded, request);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_THAT(*text, HasSubstr("Parse"));
  EXPECT_THAT(*text, Not(HasSubstr("Write")));
}

TEST(CommandTest, DirectoriesAreSearched) {
  const SymbolSearch search = SearchIn({"/one", "/two"});
  EXPECT_THAT(search.image_directories, ::testing::IsSupersetOf({"/one", "/two"}));
  EXPECT_THAT(search.debug_directories, ::testing::IsSupersetOf({"/one", "/two"}));
}

TEST(CommandTest, AProfileWithNamesKeepsThem) {
  LoadedProfile loaded = ProfileOfTwo();
  ASSERT_TRUE(SymbolizeQuickly(loaded).ok());
  EXPECT_THAT(RowsOf(loaded),
              ::testing::ElementsAre("main;Parse 3 30000000", "main;Write 1 10000000"));
}

}  // namespace
}  // namespace strobe::internal
