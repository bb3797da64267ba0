#include "../../src/encode/html/html_data.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// The texts and the columns of a page, in their order.
class PageColumns {
 public:
  using Column = std::vector<std::uint64_t>;

  explicit PageColumns(const testing::SampleProfile& sample,
                       const testing::SampleProfile* base = nullptr) {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(sample.profile, sample.symbols);
    EXPECT_TRUE(view.ok()) << view.status();
    absl::StatusOr<std::string> data;
    if (base == nullptr) {
      data = PageData(*view, nullptr);
    } else {
      const absl::StatusOr<ProfileView> other = ProfileView::Make(base->profile, base->symbols);
      data = PageData(*view, &*other);
    }
    EXPECT_TRUE(data.ok()) << data.status();
    rest_ = *data;
    ReadTexts();
    while (!rest_.empty()) columns_.push_back(ReadColumn());
  }

  [[nodiscard]] std::size_t size() const { return columns_.size(); }
  [[nodiscard]] const Column& operator[](std::size_t index) const { return columns_.at(index); }
  // The texts that a column names.
  [[nodiscard]] std::vector<std::string> Texts(std::size_t index) const {
    std::vector<std::string> texts;
    for (const std::uint64_t text : columns_.at(index)) texts.push_back(Text(text));
    return texts;
  }
  [[nodiscard]] const std::string& Text(std::uint64_t index) const { return texts_.at(index); }

 private:
  std::uint64_t Varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.at(0));
      rest_.erase(0, 1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  void ReadTexts() {
    const std::uint64_t count = Varint();
    const std::uint64_t bytes = Varint();
    std::string all = rest_.substr(0, bytes) + '\0';
    rest_.erase(0, bytes);
    for (std::uint64_t i = 0; i < count; ++i) {
      texts_.push_back(all.substr(0, all.find('\0')));
      all.erase(0, texts_.back().size() + 1);
    }
    EXPECT_THAT(all, IsEmpty());
  }
  Column ReadColumn() {
    Column column(Varint());
    const std::uint64_t width = Varint();
    const std::uint64_t divisor = Varint();
    for (std::uint64_t plane = 0; plane < width; ++plane) {
      for (std::size_t i = 0; i < column.size(); ++i)
        column[i] +=
            (std::uint64_t{static_cast<unsigned char>(rest_.at(i))} << (8 * plane)) * divisor;
      rest_.erase(0, column.size());
    }
    return column;
  }

  std::string rest_;
  std::vector<std::string> texts_;
  std::vector<Column> columns_;
};

// Where the columns of a page stand, as html_data.h has them.
enum PageColumn : std::size_t {
  kHead = 0,
  kModulePath = 3,
  kModuleBuildId,
  kFunctionName,
  kFunctionShortName,
  kFunctionFile,
  kFunctionLine,
  kFunctionModule,
  kFunctionIsPseudo,
  kSiteFunction,
  kSiteLine,
  kSiteIsInlined,
  kLevelsUp,
  kNodeSite,
  kLabelCount,
  kAbout = kLabelCount + 3,
  kLifeCount = kAbout + 4,
  kLifeBegin = kLifeCount + 3,
  kLifeEnd,
  kLifeCpu,
  kRowNode = kLifeCpu + 2,
  kRowLabels,
  kRowValues,
};

// Values are sizes, and which are less than 0. A profile of two value types has those of its rows,
// and of each function in itself and with what it calls.
constexpr std::size_t kOfValues = 2;
constexpr std::size_t kValuesOfAProfile = 2 * kOfValues + 2 * 2 * kOfValues;
constexpr std::size_t kColumnsOfMoments = 2 + 2 * kOfValues;

// main calls f, into which g is inlined; main calls h; and one stack is cut.
testing::SampleProfile ThreeStacks() {
  testing::SampleProfile sample{"three", testing::ProfileHead(), {}};
  Profile& profile = sample.profile;
  profile.modules = {
      {.start = 0x1000, .limit = 0x2000, .path = "/bin/program", .build_id = "0abc"}};
  testing::ProfileBuilder builder(profile);
  builder.AddThread(7, "main");
  const std::uint32_t main = builder.AddFrame(0x1000, 0);
  const std::uint32_t f = builder.AddFrame(0x1100, 0);
  const std::uint32_t h = builder.AddFrame(0x9000, Frame::kNoModule);
  const std::uint32_t cut = builder.AddPseudoFrame(PseudoFrame::kTruncated);
  builder.AddSample(0, {main, f}, {1, 10});
  builder.AddSample(0, {main, h}, {2, 20});
  builder.AddSample(0, {cut}, {3, 30});
  sample.symbols.functions = {
      {.name = "main", .system_name = "main", .file = "/src/m.cc", .line = 1},
      {.name = "f", .system_name = "f", .file = "/src/f.cc", .line = 4},
      {.name = "g", .system_name = "g"}};
  sample.symbols.inlined = {{.function = 2, .line = 9}};
  sample.symbols.frames = {
      {.function = 0, .line = 2}, {.function = 1, .line = 6, .inlined_count = 1}, {}, {}};
  return sample;
}

TEST(PageDataTest, FunctionsAndTheirModules) {
  const PageColumns page(ThreeStacks());
  EXPECT_THAT(page.Texts(kModulePath), ElementsAre("", "/bin/program"));
  EXPECT_THAT(page.Texts(kModuleBuildId), ElementsAre("", "0abc"));
  EXPECT_THAT(page.Texts(kFunctionName), ElementsAre("main", "f", "g", "0x9000", "[truncated]"));
  EXPECT_THAT(page.Texts(kFunctionShortName),
              ElementsAre("main", "f", "g", "0x9000", "[truncated]"));
  EXPECT_THAT(page.Texts(kFunctionFile), ElementsAre("/src/m.cc", "/src/f.cc", "", "", ""));
  EXPECT_THAT(page[kFunctionLine], ElementsAre(1, 4, 0, 0, 0));
  EXPECT_THAT(page[kFunctionModule], ElementsAre(1, 1, 1, 0, 0));
  EXPECT_THAT(page[kFunctionIsPseudo], ElementsAre(0, 0, 0, 0, 1));
  EXPECT_THAT(page[kSiteFunction], ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(page[kSiteLine], ElementsAre(2, 6, 9, 0, 0));
  EXPECT_THAT(page[kSiteIsInlined], ElementsAre(0, 0, 1, 0, 0));
}

TEST(PageDataTest, NodesSayHowManyLevelsTheirParentIsAboveTheNodeBefore) {
  const PageColumns page(ThreeStacks());
  // main; f and g, each below the one before; h, below main; the cut stack, below the root.
  EXPECT_THAT(page[kNodeSite], ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(page[kLevelsUp], ElementsAre(0, 0, 0, 2, 2));
  EXPECT_THAT(page[kRowNode], ElementsAre(3, 1, 1)) << "each less the one before";
  EXPECT_THAT(page[kRowLabels], ElementsAre(0, 0, 0));
  EXPECT_THAT(page[kRowValues], ElementsAre(1, 2, 3));
  EXPECT_THAT(page[kRowValues + kOfValues], ElementsAre(10, 20, 30));
}

TEST(PageDataTest, ValuesMayBeLessThanZero) {
  testing::SampleProfile sample = ThreeStacks();
  sample.profile.values = {1, -10, 2, 20, 3, std::numeric_limits<std::int64_t>::min()};
  const PageColumns page(sample);
  EXPECT_THAT(page[kRowValues + 1], IsEmpty());
  EXPECT_THAT(page[kRowValues + kOfValues], ElementsAre(10, 20, std::uint64_t{1} << 63));
  EXPECT_THAT(page[kRowValues + kOfValues + 1], ElementsAre(0, 2));
  EXPECT_THAT(page[kRowValues + 2 * kOfValues], IsEmpty()) << "no stack is left out";
}

TEST(PageDataTest, AboutSaysWhatWasMeasuredAndWhen) {
  testing::SampleProfile sample = ThreeStacks();
  sample.profile.sequence = 5;
  const PageColumns page(sample);
  EXPECT_THAT(page[kHead], ElementsAre(3, 1, 1, 1));
  const PageColumns::Column& about = page[kAbout];
  ASSERT_THAT(about, SizeIs(8 + 3)) << "the comments are three";
  EXPECT_EQ(page.Text(about[0]), "sample_program");
  EXPECT_EQ(about[1], 4242U);
  EXPECT_EQ(about[2], 5U);
  EXPECT_EQ(about[3], 1'700'000'000'123U);
  EXPECT_EQ(about[4], 60'000'000'000U);
  EXPECT_EQ(about[5], 10'000'000U);
  EXPECT_EQ(page.Text(about[6]), "cpu");
  EXPECT_EQ(page.Text(about[7]), "nanoseconds");
  EXPECT_THAT(page.Text(about[8]), ::testing::StartsWith("strobe: program sample_program"));
}

TEST(PageDataTest, AnEmptyProfileHasAllColumns) {
  const PageColumns page(testing::EmptyProfile());
  EXPECT_EQ(page.size(), kRowValues + kValuesOfAProfile + kColumnsOfMoments);
  EXPECT_THAT(page[kModulePath], ElementsAre(0)) << "module 0 is none";
  EXPECT_THAT(page[kFunctionName], IsEmpty());
  EXPECT_THAT(page[kRowNode], IsEmpty());
  const PageColumns nothing({.name = "", .profile = {}, .symbols = {}});
  EXPECT_EQ(nothing.size(), kRowValues + 2U) << "without value types";
}

TEST(PageDataTest, AComparisonHasTheSecondProfileBehindTheFirst) {
  const testing::SampleProfile sample = ThreeStacks();
  testing::SampleProfile base = ThreeStacks();
  base.profile.program = "base";
  const PageColumns page(sample, &base);
  EXPECT_EQ(page[kHead][1], 2U);
  constexpr std::size_t kColumnsOfAProfile = kRowValues + kValuesOfAProfile - kAbout;
  EXPECT_EQ(page.Text(page[kAbout][0]), "sample_program");
  EXPECT_EQ(page.Text(page[kAbout + kColumnsOfAProfile][0]), "base");
  EXPECT_EQ(page[kRowNode + kColumnsOfAProfile], page[kRowNode]);
  EXPECT_EQ(page.size(), kAbout + 2 * kColumnsOfAProfile + kColumnsOfMoments);
}

TEST(PageDataTest, HostileNumbersOfThreadsDoNoHarm) {
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  testing::SampleProfile sample = ThreeStacks();
  sample.profile.time_ns = 1;
  sample.profile.threads = {
      {.id = 1, .name = "", .begin_ns = kLeast, .end_ns = kMost, .cpu_ns = kLeast},
      {.id = 2, .name = "", .begin_ns = kMost, .end_ns = kLeast, .cpu_ns = kMost}};
  const PageColumns page(sample);
  EXPECT_THAT(page[kLifeCount], ElementsAre(2));
  EXPECT_THAT(page[kLifeBegin], ElementsAre(kMost, 0)) << "the one with more CPU time first";
  EXPECT_THAT(page[kLifeEnd], ElementsAre(0, kMost));
  EXPECT_THAT(page[kLifeCpu], ElementsAre(std::uint64_t{1} << 63, 0));
}

}  // namespace
}  // namespace strobe::internal
