#include "strobe/testing/profile_check.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

using ::testing::HasSubstr;

template <class Change>
std::string CheckAfter(Change change) {
  SampleProfile sample = SmallProfile();
  EXPECT_EQ(CheckProfile(sample.profile), "");
  change(sample.profile);
  return CheckProfile(sample.profile);
}

TEST(ProfileCheckTest, FindsEachInconsistency) {
  EXPECT_THAT(CheckAfter([](Profile& p) { p.value_types.clear(); }), HasSubstr("no value types"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.default_value_type = 3; }),
              HasSubstr("default value type"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.values.pop_back(); }), HasSubstr("values for"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.modules[1].limit = p.modules[1].start; }),
              HasSubstr("module 1 is empty"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.frames[1] = p.frames[0]; }),
              HasSubstr("frame 1 stands there twice"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.frames[0].module = 2; }), HasSubstr("module 2"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.frames[0].address = p.modules[0].limit; }),
              HasSubstr("outside its module"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.frames.back().address = kPseudoFrameCount; }),
              HasSubstr("no known pseudo-frame"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.stacks.clear(); }), HasSubstr("no root"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.stacks[0].parent = 1; }), HasSubstr("its own parent"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.stacks[1].parent = 2; }),
              HasSubstr("before its parent"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.stacks[1].frame = 99; }), HasSubstr("frame 99"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.stacks[3] = p.stacks[2]; }),
              HasSubstr("stack 3 stands there twice"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.samples[0].stack = 99; }), HasSubstr("stack 99"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.samples[0].labels = 99; }), HasSubstr("labels 99"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.samples[1] = p.samples[0]; }),
              HasSubstr("sample 1 stands there twice"));
  const auto with_moment = [](std::uint32_t row, std::int64_t more) {
    return CheckAfter([=](Profile& p) {
      p.moments = {{.sample = row, .time_ns = 5}};
      p.moment_values.assign(p.values.begin(), p.values.begin() + 3);
      p.moment_values[0] += more;
    });
  };
  EXPECT_EQ(with_moment(0, 0), "");
  EXPECT_THAT(with_moment(99, 0), HasSubstr("names sample 99"));
  EXPECT_THAT(with_moment(0, 1), HasSubstr("more than is left of its row"));
  EXPECT_THAT(CheckAfter([](Profile& p) { p.threads[0].name = "\xFF"; }),
              HasSubstr("name of thread 0"));
}

}  // namespace
}  // namespace strobe::testing
