#include "../../../src/cli/perf/perf_event_table.h"

#include <set>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

TEST(PerfEventTable, NoNameHasTwoMeanings) {
  std::set<std::string_view> names;
  for (const KnownPerfEvent& event : kPerfEventTable) {
    VisitNames(event, [&](std::string_view name) {
      EXPECT_FALSE(name.empty()) << event.name;
      EXPECT_TRUE(names.insert(name).second) << name;
    });
  }
}

TEST(PerfEventTable, HasTheNamesOfEachEvent) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) { names.push_back(name); };
  VisitNames({"a", 0, 0, "b cd e"}, add);
  VisitNames({"f", 0, 0}, add);
  EXPECT_THAT(names, ElementsAre("a", "b", "cd", "e", "f"));
}

// By perf_event_open(2): the cache, its use in the second byte, the result in the third.
TEST(PerfEventTable, NumbersEventsOfCachesAsTheKernelDoes) {
  EXPECT_EQ(PerfCacheConfig(PerfCache::kL1Data, false, false), 0u);
  EXPECT_EQ(PerfCacheConfig(PerfCache::kLast, false, true), 0x10002u);
  EXPECT_EQ(PerfCacheConfig(PerfCache::kDataTlb, true, true), 0x10103u);
}

}  // namespace
}  // namespace strobe::internal
