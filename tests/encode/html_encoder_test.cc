#include "strobe/encode/html_encoder.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "html_page_reader.h"
#include "strobe/encode/profile_view.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Html, EncoderConformance, HtmlEncoder);

namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

PageContent ReadBack(const absl::StatusOr<std::string>& page) {
  EXPECT_TRUE(page.ok()) << page.status();
  const std::optional<PageContent> content = PageReader::Read(page.value_or(""));
  EXPECT_TRUE(content.has_value()) << "the page's data cannot be read";
  return content.value_or(PageContent());
}

PageContent PageOf(const SampleProfile& sample) {
  return ReadBack(HtmlEncoder().Encode(sample.profile, sample.symbols));
}

// The page without its data.
std::string Markup(const SampleProfile& sample) {
  std::string page = HtmlEncoder().Encode(sample.profile, sample.symbols).value_or("");
  const std::size_t begin = page.find("id=\"data\">");
  return page.erase(begin, page.find("</script>", begin) - begin);
}

// A frame as PageContent::Row writes it, with what is inlined there.
std::string FrameText(const SampleProfile& sample, const ProfileView& view, std::uint32_t frame) {
  std::string text = absl::StrCat(view.FrameText(frame), ":", view.LineOf(frame).line);
  const auto inlined = view.InlinedAt(frame);
  for (std::size_t i = inlined.size(); i-- > 0;)
    absl::StrAppend(&text, ";^", sample.symbols.functions[inlined[i].function].name, ":",
                    inlined[i].line);
  return text;
}

std::string LabelsText(const LabelSet& set) {
  std::string text;
  for (const Label& label : set.labels()) {
    absl::StrAppend(&text, text.empty() ? "" : ",", label.key, "=");
    if (const auto* number = std::get_if<std::int64_t>(&label.value))
      absl::StrAppend(&text, *number);
    else
      absl::StrAppend(&text, std::get<std::string>(label.value));
  }
  return text;
}

using PageRows = std::map<std::pair<std::string, std::string>, std::vector<std::int64_t>>;

// The profile's rows by stack and labels, as the page must have them.
PageRows ExpectedRows(const SampleProfile& sample) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
  PageRows rows;
  for (std::size_t i = 0; i < sample.profile.samples.size(); ++i) {
    std::string stack;
    view->VisitStack(i, [&](std::uint32_t frame) {
      stack = absl::StrCat(FrameText(sample, *view, frame), stack.empty() ? "" : ";", stack);
    });
    auto& values = rows[{stack, LabelsText(sample.profile.Labels(i))}];
    values.resize(sample.profile.value_types.size());
    for (std::size_t type = 0; type < values.size(); ++type)
      values[type] += sample.profile.Values(i)[type];
  }
  return rows;
}

PageRows RowsOf(const PageContent::Side& side) {
  PageRows rows;
  for (const PageContent::Row& row : side.rows) {
    EXPECT_TRUE(rows.emplace(std::pair(row.stack, row.labels), row.values).second)
        << row.stack << " stands in the page twice";
  }
  return rows;
}

TEST(HtmlEncoderTest, EveryRowComesBackWithItsStackLabelsAndValues) {
  for (const SampleProfile& sample : SampleProfiles()) {
    const PageContent page = PageOf(sample);
    ASSERT_THAT(page.sides, SizeIs(1)) << sample.name;
    EXPECT_EQ(page.version, 3U);
    EXPECT_EQ(page.default_type, sample.profile.default_value_type);
    EXPECT_EQ(RowsOf(page.sides[0]), ExpectedRows(sample)) << sample.name;
  }
}

TEST(HtmlEncoderTest, AddressesOfTheSameLineAreOneNode) {
  SampleProfile sample{"lines", ProfileHead(), {}};
  ProfileBuilder builder(sample.profile);
  builder.AddThread(1, "main");
  sample.symbols.functions = {{.name = "f", .system_name = "f", .file = "f.cc", .line = 1}};
  for (std::uint32_t i = 0; i < 3; ++i) {
    builder.AddSample(0, {builder.AddFrame(0x1000 + i, Frame::kNoModule)}, {1, 10});
    sample.symbols.frames.push_back({.function = 0, .line = i == 2 ? 8U : 7U});
  }
  const PageContent page = PageOf(sample);
  EXPECT_EQ(page.node_count, 2U);
  EXPECT_THAT(RowsOf(page.sides[0]),
              ElementsAre(std::pair(std::pair("f:7", "thread id=1,thread name=main"),
                                    std::vector<std::int64_t>{2, 20}),
                          std::pair(std::pair("f:8", "thread id=1,thread name=main"),
                                    std::vector<std::int64_t>{1, 10})));
}

TEST(HtmlEncoderTest, ThreadsSayHowOftenTheyWereSampled) {
  const PageContent page = PageOf(DetailedProfile());
  EXPECT_THAT(page.sides[0].threads,
              ElementsAre("4242 main 90", "4243 w\xC3\xB6rker 1 90", "4294967295  90"));
  EXPECT_EQ(page.sides[0].program, "sample_program");
}

TEST(HtmlEncoderTest, AThreadWithSeveralLivesIsOneThread) {
  SampleProfile sample = DetailedProfile();
  ProfileThread again = sample.profile.threads[1];
  again.samples = 7;
  sample.profile.threads.push_back(again);
  EXPECT_THAT(PageOf(sample).sides[0].threads,
              ElementsAre("4242 main 90", "4243 w\xC3\xB6rker 1 97", "4294967295  90"));
}

TEST(HtmlEncoderTest, LivesOfThreadsAreThereByTheirCpuTime) {
  SampleProfile sample = SmallProfile();
  Profile& profile = sample.profile;
  const std::int64_t begin = profile.time_ns = 1'000'000'000'000;
  profile.threads = {{7, "no clock", begin - 5, 0, -1, 3},
                     {8, "idle", 0, begin, 0, 0},
                     {9, "short", begin + 100, begin + 1'000'100, 900'000, 1},
                     {8, "idle", begin + 2, begin + 3, 1, 0}};
  const PageContent page = PageOf(sample);
  EXPECT_EQ(page.sides[0].life_count, 4U);
  EXPECT_THAT(page.sides[0].lives, ElementsAre("9 short 101 1000101 900001 1", "8 idle 3 4 2 0",
                                               "8 idle 0 1 1 0", "7 no clock 0 0 0 3"));
}

TEST(HtmlEncoderTest, LivesBeyondTheLimitAreCounted) {
  SampleProfile sample = SmallProfile();
  for (std::int64_t i = 0; i < 5000; ++i)
    sample.profile.threads.push_back({.id = 10'000, .name = "short", .cpu_ns = i + 1'000'000'000});
  const PageContent page = PageOf(sample);
  EXPECT_EQ(page.sides[0].life_count, sample.profile.threads.size());
  ASSERT_EQ(page.sides[0].lives.size(), HtmlEncoder::kMaxLives);
  EXPECT_EQ(page.sides[0].lives.front(), "10000 short 0 0 1000005000 0");
}

TEST(HtmlEncoderTest, MomentsKeepTheirTimesRowsAndValues) {
  const SampleProfile sample = DetailedProfile();
  const PageContent page = PageOf(sample);
  ASSERT_EQ(page.moments.size(), sample.profile.moments.size());
  const PageRows expected = ExpectedRows(sample);
  for (std::size_t i = 0; i < page.moments.size(); ++i) {
    const ProfileMoment& moment = sample.profile.moments[i];
    EXPECT_EQ(page.moments[i].time_ns,
              static_cast<std::uint64_t>(moment.time_ns - sample.profile.time_ns));
    EXPECT_EQ(page.moments[i].values, (std::vector<std::int64_t>{1, 10'000'000, 0}));
    const PageContent::Row& row = page.sides[0].rows[page.moments[i].row];
    EXPECT_EQ(row.labels, LabelsText(sample.profile.Labels(moment.sample)));
    EXPECT_EQ(row.values, expected.at({row.stack, row.labels}));
  }
}

TEST(HtmlEncoderTest, TooManyMomentsAreThinnedEvenly) {
  SampleProfile sample = DetailedProfile();
  const std::size_t count = 2 * HtmlEncoder::kMaxMoments + 1;
  sample.profile.moments.assign(count, {.sample = 0, .time_ns = sample.profile.time_ns});
  sample.profile.moment_values.assign(3 * count, 1);
  const PageContent page = PageOf(sample);
  EXPECT_EQ(page.moment_stride, 3U);
  EXPECT_EQ(page.moments.size(), (count + 2) / 3);
}

TEST(HtmlEncoderTest, TimesThatRunBackwardsStandStill) {
  SampleProfile sample = DetailedProfile();
  sample.profile.moments[1].time_ns = std::numeric_limits<std::int64_t>::min();
  sample.profile.moments[3].time_ns = std::numeric_limits<std::int64_t>::max();
  const PageContent page = PageOf(sample);
  EXPECT_EQ(page.moments[1].time_ns, page.moments[0].time_ns);
  EXPECT_EQ(page.moments[5].time_ns, page.moments[3].time_ns);
}

TEST(HtmlEncoderTest, SmallestStacksBeyondTheLimitBecomeOneForEachCaller) {
  // Each stack is a chain of its own, so the tree has as many nodes as the stacks have frames.
  const SampleProfile sample = RandomProfile(HtmlEncoder::kMaxNodes / 28, 30, 0, 50'000);
  std::vector<std::int64_t> sums(2);
  for (std::size_t i = 0; i < sample.profile.values.size(); ++i)
    sums[i % 2] += sample.profile.values[i];
  const absl::StatusOr<std::string> bytes = HtmlEncoder().Encode(sample.profile, sample.symbols);
  const PageContent page = ReadBack(bytes);
  EXPECT_THAT(page.functions, Contains("[small stacks]"));
  EXPECT_GT(page.node_count, HtmlEncoder::kMaxNodes);
  EXPECT_LE(page.node_count, 2 * HtmlEncoder::kMaxNodes);
  EXPECT_LE(bytes->size(), 4U << 20);
  std::int64_t small = 0;
  for (const PageContent::Row& row : page.sides[0].rows) {
    for (std::size_t type = 0; type < 2; ++type) sums[type] -= row.values[type];
    if (row.stack.ends_with("[small stacks]:0")) small += row.values[0];
  }
  EXPECT_THAT(sums, Each(0)) << "the sums are complete";
  EXPECT_GT(small, 0);
  EXPECT_LT(small, static_cast<std::int64_t>(sample.profile.samples.size()) * 4)
      << "the heaviest are kept";
}

TEST(HtmlEncoderTest, FunctionsAreExactHoweverManyStacksAreLeftOut) {
  const SampleProfile sample = RandomProfile(HtmlEncoder::kMaxNodes / 28, 30, 0, 50'000);
  const Profile& profile = sample.profile;
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> expected;  // self and total, by name
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::set<std::string> seen;
    view->VisitStack(i, [&](std::uint32_t frame) {
      const std::string name = view->FrameText(frame);
      if (seen.empty()) expected[name].first += profile.Values(i)[1];
      if (seen.insert(name).second) expected[name].second += profile.Values(i)[1];
    });
  }
  const PageContent page = PageOf(sample);
  ASSERT_EQ(page.sides[0].selfs[1].size(), page.functions.size());
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> sums;
  for (std::size_t i = 0; i < page.functions.size(); ++i) {
    if (page.sides[0].totals[1][i] != 0)
      sums[page.functions[i]] = {page.sides[0].selfs[1][i], page.sides[0].totals[1][i]};
  }
  EXPECT_EQ(sums, expected);
  EXPECT_THAT(PageOf(SmallProfile()).sides[0].selfs[1], SizeIs(0)) << "the rows say it";
}

TEST(HtmlEncoderTest, NegativeAndHugeValuesStayInRange) {
  SampleProfile sample = SmallProfile();
  std::fill(sample.profile.values.begin(), sample.profile.values.end(), -1);
  PageContent page = PageOf(sample);
  for (const PageContent::Row& row : page.sides[0].rows) EXPECT_THAT(row.values, Each(-1));
  // Rows that become one row of the page.
  const ProfileSample row = sample.profile.samples[0];
  sample.profile.samples.assign(4, row);
  sample.profile.values.assign(3 * 4, std::numeric_limits<std::int64_t>::max());
  page = PageOf(sample);
  ASSERT_THAT(page.sides[0].rows, SizeIs(1));
  EXPECT_THAT(page.sides[0].rows[0].values, Each(std::numeric_limits<std::int64_t>::max()));
}

TEST(HtmlEncoderTest, ComparisonFindsTheSameFunctionsAtOtherAddresses) {
  const SampleProfile now = DetailedProfile();
  SampleProfile base = DetailedProfile();
  for (Module& module : base.profile.modules) {
    module.path = "/elsewhere/" + module.path.substr(module.path.rfind('/') + 1);
    module.start += 0x10000;
    module.limit += 0x10000;
    module.load_bias += 0x10000;
  }
  for (Frame& frame : base.profile.frames)
    if (frame.module < 2) frame.address += 0x10000;
  for (FunctionSymbol& function : base.symbols.functions)
    if (!function.file.empty()) function.file = "/old" + function.file;
  const PageContent page = ReadBack(
      HtmlEncoder().EncodeComparison(now.profile, now.symbols, base.profile, base.symbols));
  ASSERT_THAT(page.sides, SizeIs(2));
  EXPECT_EQ(RowsOf(page.sides[0]), ExpectedRows(now));
  EXPECT_EQ(RowsOf(page.sides[1]), ExpectedRows(base));
  EXPECT_EQ(page.functions, PageOf(now).functions) << "no function stands there twice";
  EXPECT_EQ(page.node_count, PageOf(now).node_count);
}

TEST(HtmlEncoderTest, ComparisonTakesTheValueTypesOfTheProfile) {
  const SampleProfile now = RandomProfile(10, 3, 0, 20);
  SampleProfile base = SmallProfile();  // samples, cpu, wall
  std::swap(base.profile.value_types[0], base.profile.value_types[1]);
  PageContent page = ReadBack(
      HtmlEncoder().EncodeComparison(now.profile, now.symbols, base.profile, base.symbols));
  EXPECT_THAT(page.types, ElementsAre("samples/count", "cpu/nanoseconds"));
  EXPECT_THAT(page.sides[1].rows[0].values, SizeIs(2));
  std::int64_t samples = 0;
  for (const PageContent::Row& row : page.sides[1].rows) samples += row.values[0];
  EXPECT_EQ(samples, 1'053'000'000U) << "what the base calls samples now";
  // A type that only the profile has is 0 in the base.
  page = ReadBack(
      HtmlEncoder().EncodeComparison(base.profile, base.symbols, now.profile, now.symbols));
  EXPECT_THAT(page.types, SizeIs(3));
  for (const PageContent::Row& row : page.sides[1].rows) EXPECT_EQ(row.values[2], 0);
}

TEST(HtmlEncoderTest, ComparisonNeedsACommonValueType) {
  const SampleProfile now = SmallProfile();
  SampleProfile base = SmallProfile();
  base.profile.value_types = {{"a", "bytes"}, {"b", "bytes"}, {"c", "bytes"}};
  const auto page =
      HtmlEncoder().EncodeComparison(now.profile, now.symbols, base.profile, base.symbols);
  EXPECT_EQ(page.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(page.status().message()), HasSubstr("no value type in common"));
}

TEST(HtmlEncoderTest, IndicesOutOfRangeAreErrors) {
  SampleProfile broken = SmallProfile();
  broken.profile.samples[0].stack = 1000;
  const SampleProfile sound = SmallProfile();
  HtmlEncoder encoder;
  for (const absl::Status& status :
       {encoder.Encode(broken.profile, broken.symbols).status(),
        encoder.EncodeComparison(broken.profile, broken.symbols, sound.profile, sound.symbols)
            .status(),
        encoder.EncodeComparison(sound.profile, sound.symbols, broken.profile, broken.symbols)
            .status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST(HtmlEncoderTest, TextsOfAProfileAreNoPartOfItsMarkup) {
  SampleProfile sample = DetailedProfile();
  const std::string plain = Markup(sample);
  const std::string hostile = "</script><script>alert('\"`&${x}')</script>\xFF";
  sample.profile.label_sets[0] =
      LabelSet({{hostile, hostile}, {std::string(kThreadIdLabel), 4242}});
  for (FunctionSymbol& function : sample.symbols.functions) {
    function.name += hostile;
    function.file = hostile;
  }
  for (Module& module : sample.profile.modules) module.path = module.build_id = hostile;
  for (ProfileThread& thread : sample.profile.threads) thread.name = hostile;
  EXPECT_EQ(Markup(sample), plain);
  const PageContent page = PageOf(sample);
  EXPECT_THAT(page.functions, Contains("main</script><script>alert('\"`&${x}')</script>?"));
}

TEST(HtmlEncoderTest, TitleIsTheEscapedNameOfTheProgram) {
  SampleProfile sample = SmallProfile();
  sample.profile.program = "</title><b>&\"\xFF\n";
  EXPECT_THAT(Markup(sample),
              HasSubstr("<title>&lt;/title&gt;&lt;b&gt;&amp;\"? : profile</title>"));
  sample.profile.program = "";
  EXPECT_THAT(Markup(sample), HasSubstr("<title>profile: profile</title>"));
  sample.profile.program = std::string(100'000, 'x');
  EXPECT_LT(Markup(sample).size(), Markup(SmallProfile()).size() + 1000);
}

TEST(HtmlEncoderTest, PageLoadsNothing) {
  const std::string markup = Markup(SmallProfile());
  EXPECT_THAT(markup, HasSubstr("content=\"default-src 'none'; script-src 'sha256-"));
  for (const char* outside : {"http:", "https:", "//cdn", "@import", "url(", "src=", "import("})
    EXPECT_THAT(markup, Not(HasSubstr(outside)));
}

TEST(HtmlEncoderTest, LongNamesAndDeepInliningAreCut) {
  SampleProfile sample = DetailedProfile();
  sample.symbols.functions[0].name = std::string(1'000'000, 'x');
  sample.symbols.inlined.resize(1000, {.function = 2, .line = 1});
  sample.symbols.frames[0].inlined_begin = 0;
  sample.symbols.frames[0].inlined_count = 1000;
  const PageContent page = PageOf(sample);
  EXPECT_THAT(page.functions, Contains(std::string(HtmlEncoder::kMaxTextBytes, 'x')));
  EXPECT_LT(page.node_count, 10 * HtmlEncoder::kMaxInlined);
}

}  // namespace
}  // namespace strobe::testing
