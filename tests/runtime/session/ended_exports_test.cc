#include "strobe/runtime/session/ended_exports.h"

#include <memory>
#include <vector>

#include "../hanging_worker.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::HangingWorker;

std::uint64_t ExportsOf(const EndedExports<HangingWorker>& ended) {
  Stats stats;
  ended.AddTo(stats);
  return stats.exports;
}

TEST(EndedExports, AWorkerCountsWhileItHangsAndAfterwards) {
  CollectorCounters counters;
  EndedExports<HangingWorker> ended(counters);
  ASSERT_TRUE(ended.MakeRoom().ok());
  const auto worker = std::make_shared<HangingWorker>();
  ended.Add(worker);
  EXPECT_EQ(ExportsOf(ended), 1u);
  worker->exports = 3;  // what hung has gone on
  EXPECT_EQ(ExportsOf(ended), 3u);
  worker->has_ended = true;
  ASSERT_TRUE(ended.MakeRoom().ok());
  EXPECT_EQ(worker.use_count(), 1) << "it is not kept";
  EXPECT_EQ(ExportsOf(ended), 3u);
}

TEST(EndedExports, AsManyMayHangAsTheLimitSays) {
  CollectorCounters counters;
  EndedExports<HangingWorker> ended(counters);
  std::vector<std::shared_ptr<HangingWorker>> workers;
  for (std::size_t i = 0; i < kMaxAbandonedExporters; ++i) {
    ASSERT_TRUE(ended.MakeRoom().ok());
    ended.Add(workers.emplace_back(std::make_shared<HangingWorker>()));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(ended.MakeRoom()));
  workers[2]->has_ended = true;
  EXPECT_TRUE(ended.MakeRoom().ok());
  EXPECT_EQ(ExportsOf(ended), kMaxAbandonedExporters);
}

TEST(AddExports, AddsCountsAndKeepsTheLastWord) {
  Stats stats;
  stats.exports = 2;
  stats.last_export_error = "disk full";
  stats.last_export_path = "/old";
  stats.partly_named_module = "/lib/x";
  Stats more;
  OutputStats& output = more.outputs.emplace_back();
  output.exports = 1;
  output.exports_failed = 4;
  output.exports_dropped = 2;
  output.amount_dropped = 70;
  more.out_of_memory = 6;
  AddExports(stats, more);
  EXPECT_EQ(stats.exports, 3u);
  EXPECT_EQ(stats.exports_failed, 4u);
  EXPECT_EQ(stats.exports_dropped, 2u);
  EXPECT_EQ(stats.amount_dropped, 70);
  EXPECT_EQ(stats.out_of_memory, 6u);
  EXPECT_EQ(stats.last_export_error, "");
  EXPECT_EQ(stats.last_export_path, "/old") << "where the last success went";
  EXPECT_EQ(stats.partly_named_module, "/lib/x");
  ASSERT_EQ(stats.outputs.size(), 1u);
  EXPECT_EQ(stats.outputs[0].amount_dropped, 70);
}

}  // namespace
}  // namespace strobe::internal
