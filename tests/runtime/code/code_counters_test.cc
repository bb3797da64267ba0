#include "strobe/runtime/code/code_counters.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(CodeCounters, StandInTheStatsUnderTheirNames) {
  CodeCounters counters;
  counters.refreshes = 7;
  counters.table_bytes = 12;
  counters.tables = 13;
  counters.SetUnread("/lib/x");
  Stats stats;
  stats.memory_bytes = 100;
  counters.AddTo(stats);
  EXPECT_EQ(stats.module_refreshes, 7u);
  EXPECT_EQ(stats.memory_bytes, 112u);
  EXPECT_EQ(stats.unwind_tables, 13u);
  EXPECT_EQ(stats.unread_module, "/lib/x");
  counters.SetUnread("");
  counters.AddTo(stats);
  EXPECT_EQ(stats.unread_module, "") << "all could be read at last";
}

}  // namespace
}  // namespace strobe::internal
