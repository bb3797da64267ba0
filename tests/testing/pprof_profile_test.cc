#include "strobe/testing/pprof_profile.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

// One sample of one location in one function of one mapping.
PprofProfile Good() {
  PprofProfile profile;
  profile.sample_types = {{"cpu", "nanoseconds"}};
  profile.samples = {{.locations = {1}, .values = {150}, .labels = {}}};
  profile.mappings = {{.id = 1, .start = 16, .limit = 32, .filename = "", .build_id = ""}};
  profile.locations = {{.id = 1, .mapping = 1, .address = 16, .lines = {{.function = 1}}}};
  profile.functions = {{.id = 1, .name = "f", .system_name = "_f", .filename = ""}};
  return profile;
}

std::string CheckAfter(void (*change)(PprofProfile& profile)) {
  PprofProfile profile = Good();
  change(profile);
  return CheckPprof(profile);
}

TEST(PprofProfileTest, AStackHasTheNamesOfItsFunctions) {
  PprofProfile profile = Good();
  profile.locations.push_back({.id = 2, .lines = {}});
  profile.samples[0].locations.push_back(2);
  EXPECT_EQ(profile.Stack(profile.samples[0]), (std::vector<std::string>{"f", ""}));
  EXPECT_EQ(profile.FunctionName(7), "");
}

TEST(PprofProfileTest, CheckFindsWhatPprofWouldRefuse) {
  EXPECT_EQ(CheckPprof(Good()), "");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.samples[0].values.clear(); }),
            "number of values of sample 0");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.samples[0].locations[0] = 2; }),
            "sample 0 names location 2");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.locations[0].id = 0; }), "location id 0");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.locations[0].mapping = 5; }),
            "location 1 names mapping 5");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.locations[0].lines = {{.function = 9}}; }),
            "location 1 names function 9");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.functions.push_back(p.functions[0]); }),
            "function id 1");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.mappings.push_back(p.mappings[0]); }),
            "mapping id 1");
  EXPECT_EQ(CheckAfter([](PprofProfile& p) { p.locations[0].address = 32; }),
            "location 1 lies outside its mapping");
}

}  // namespace
}  // namespace strobe::testing
