#include "strobe/export/profile_sum.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/profile_view.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// The last values of each stack, written from the leaf to the root.
std::map<std::string, std::int64_t> LastColumn(const ProfileSum& sum) {
  const auto view = ProfileView::Make(sum.profile(), sum.symbols());
  EXPECT_TRUE(view.ok()) << view.status();
  std::map<std::string, std::int64_t> values;
  if (!view.ok()) return values;
  for (std::size_t i = 0; i < sum.profile().samples.size(); ++i) {
    std::string stack;
    view->VisitStack(i, [&](std::uint32_t frame) {
      stack += (stack.empty() ? "" : ";") + view->FrameText(frame);
    });
    values[stack] += sum.profile().Values(i).back();
  }
  return values;
}

// Frames 0 and 1 are functions of these names; each row is one of thread 7.
SampleProfile PeriodOf(const std::string& leaf, const std::string& root) {
  SampleProfile period;
  period.profile = ProfileHead();
  Module& module = period.profile.modules.emplace_back();
  module.start = 0x1000;
  module.limit = 0x9000;
  module.path = "/program";
  ProfileBuilder builder(period.profile);
  builder.AddThread(7, "worker");
  for (const std::string& name : {leaf, root}) {
    const auto number = static_cast<std::uint32_t>(period.symbols.functions.size());
    // The address tells the function, as it does in a program.
    builder.AddFrame(0x1000 + 16 * static_cast<Address>(name.back()), 0);
    period.symbols.functions.push_back({.name = name, .system_name = name});
    period.symbols.frames.push_back({.function = number});
  }
  period.symbols.modules = {SymbolDetail::kNames};
  return period;
}

TEST(ProfileSumTest, OnePeriodIsItself) {
  for (const SampleProfile& sample : SampleProfiles()) {
    ProfileSum sum;
    sum.Add(sample.profile, sample.symbols);
    EXPECT_TRUE(ProfileView::Make(sum.profile(), sum.symbols()).ok()) << sample.name;
    EXPECT_EQ(sum.profile().values, sample.profile.values) << sample.name;
    EXPECT_EQ(sum.profile().duration_ns, sample.profile.duration_ns) << sample.name;
    EXPECT_EQ(sum.profile().label_sets, sample.profile.label_sets) << sample.name;
  }
}

TEST(ProfileSumTest, AddsTheRowsOfEqualStacksUp) {
  SampleProfile first = PeriodOf("a", "b");
  ProfileBuilder(first.profile).AddSample(0, {1, 0}, {1, 10});
  SampleProfile second = PeriodOf("b", "a");  // with other numbers
  ProfileBuilder(second.profile).AddSample(0, {0, 1}, {2, 20});
  ProfileBuilder(second.profile).AddSample(0, {1}, {3, 30});
  ProfileSum sum;
  sum.Add(first.profile, first.symbols);
  sum.Add(second.profile, second.symbols);
  EXPECT_THAT(LastColumn(sum), UnorderedElementsAre(Pair("a;b", 30), Pair("a", 30)));
  EXPECT_EQ(sum.profile().modules.size(), 1U);
  EXPECT_EQ(sum.symbols().functions.size(), 2U);
  EXPECT_EQ(sum.profile().threads.size(), 1U);
  EXPECT_EQ(sum.profile().duration_ns, 2 * first.profile.duration_ns);
}

TEST(ProfileSumTest, ALevelIsThatOfTheLastPeriod) {
  SampleProfile period = PeriodOf("a", "b");
  period.profile.value_types = {{"alloc_space", "bytes"}, {"inuse_space", "bytes"}};
  ProfileBuilder(period.profile).AddSample(0, {1, 0}, {100, 70});
  ProfileSum sum({"inuse_space"});
  sum.Add(period.profile, period.symbols);
  period.profile.values = {5, 40};
  sum.Add(period.profile, period.symbols);
  EXPECT_THAT(sum.profile().values, ElementsAre(105, 40));
  EXPECT_EQ(sum.profile().default_value_type, 1U);
  period.profile.samples.clear();
  period.profile.values.clear();
  sum.Add(period.profile, period.symbols);
  EXPECT_THAT(sum.profile().values, ElementsAre(105, 0)) << "nothing is live any more";
}

TEST(ProfileSumTest, TakesANameThatALaterPeriodHasFound) {
  SampleProfile first = PeriodOf("a", "b");
  ProfileBuilder(first.profile).AddSample(0, {0}, {1, 10});
  first.symbols = {};
  SampleProfile second = PeriodOf("a", "b");
  ProfileSum sum;
  sum.Add(first.profile, first.symbols);
  sum.Add(second.profile, second.symbols);
  EXPECT_THAT(LastColumn(sum), ElementsAre(Pair("a", 10)));
}

TEST(ProfileSumTest, RowsBeyondTheLimitAreInOverflow) {
  SampleProfile period = PeriodOf("a", "b");
  for (std::size_t i = 0; i < ProfileSum::kMaxRows + 5; ++i) {
    period.profile.label_sets.push_back(LabelSet({{"number", static_cast<std::int64_t>(i)}}));
    period.profile.samples.push_back({.stack = 0, .labels = static_cast<std::uint32_t>(i + 1)});
    period.profile.values.insert(period.profile.values.end(), {1, 1});
  }
  ProfileSum sum;
  sum.Add(period.profile, period.symbols);
  EXPECT_EQ(sum.profile().samples.size(), ProfileSum::kMaxRows + 1);
  EXPECT_EQ(LastColumn(sum)["[overflow]"], 5);
}

}  // namespace
}  // namespace strobe::testing
