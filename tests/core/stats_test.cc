#include "strobe/core/stats.h"

#include <gtest/gtest.h>

#include <set>
#include <string_view>

namespace strobe {
namespace {

TEST(DropReasonName, NamesEachReasonDistinctly) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kDropReasonCount; ++i) {
    const std::string_view name = DropReasonName(static_cast<DropReason>(i));
    EXPECT_NE(name, "unknown");
    EXPECT_TRUE(names.insert(name).second) << name;
  }
  EXPECT_EQ(DropReasonName(static_cast<DropReason>(kDropReasonCount)), "unknown");
}

TEST(Stats, StartAtZero) {
  const Stats stats;
  EXPECT_EQ(stats.samples, 0u);
  for (const std::uint64_t count : stats.drops) EXPECT_EQ(count, 0u);
  for (const std::uint64_t count : stats.stack_ends) EXPECT_EQ(count, 0u);
  EXPECT_TRUE(stats.last_export_error.empty());
}

TEST(ExportDropName, EachReasonToDropAnExportHasAName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kExportDropCount; ++i)
    names.insert(ExportDropName(static_cast<ExportDrop>(i)));
  EXPECT_EQ(names.size(), kExportDropCount);
  EXPECT_FALSE(names.contains("unknown"));
}

}  // namespace
}  // namespace strobe
