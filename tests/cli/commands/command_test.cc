#include "../../../src/cli/commands/command.h"

#include <string>

#include "../made_profile.h"
#include "../made_request.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

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
