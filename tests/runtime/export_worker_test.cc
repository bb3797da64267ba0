#include "strobe/runtime/export_worker.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "manual_traits.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/runtime/monitor.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::KeepingExporter;
using testing::ManualPlatform;
using testing::ManualTraits;

std::chrono::steady_clock::time_point In(int seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

// A period with one stack of one thread.
ExportJob Job(std::uint64_t sequence, std::vector<std::size_t> columns = {0, 1, 2}) {
  Aggregator aggregator(3, 1 << 20);
  const std::uint32_t key = aggregator.AddThread(1, "thread");
  const std::vector<Address> stack{0x401000};
  aggregator.Add(key, {.generation = 1, .leaf_first = stack},
                 std::vector<std::int64_t>{1, 20, 300});
  ExportJob job{.samples = aggregator.Take(), .profile = {}, .columns = std::move(columns)};
  job.profile.value_types = {{"a", "count"}, {"b", "count"}, {"c", "count"}};
  job.profile.default_value_type = job.columns.size() == 1 ? 0 : 1;
  job.profile.sequence = sequence;
  return job;
}

std::vector<std::uint64_t> SequencesKept() {
  std::vector<std::uint64_t> sequences;
  for (const Profile& profile : KeepingExporter::Take()) sequences.push_back(profile.sequence);
  return sequences;
}

// Stands in its Export until it is let go.
class GatedExporter {
 public:
  explicit GatedExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const std::lock_guard lock(monitor_);
    ++entered_;
    monitor_.NotifyAll();
    monitor_.WaitFor([] { return is_open_; });
    sequences_left_.push_back(request.profile.sequence);
    monitor_.NotifyAll();
    return std::string("beyond the gate");
  }
  static void Reset() {
    const std::lock_guard lock(monitor_);
    is_open_ = false;
    entered_ = 0;
    sequences_left_.clear();
  }
  static void Open() {
    const std::lock_guard lock(monitor_);
    is_open_ = true;
    monitor_.NotifyAll();
  }
  static void WaitUntilEntered() {
    const std::lock_guard lock(monitor_);
    monitor_.WaitFor([] { return entered_ != 0; });
  }
  // The profiles that have passed, once there are so many.
  static std::vector<std::uint64_t> WaitForSequences(std::size_t count) {
    const std::lock_guard lock(monitor_);
    monitor_.WaitFor([&] { return sequences_left_.size() >= count; });
    return sequences_left_;
  }

 private:
  static inline Monitor monitor_;
  static inline bool is_open_ = false;
  static inline int entered_ = 0;
  static inline std::vector<std::uint64_t> sequences_left_;
};
struct GatedTraits : ManualTraits {
  using Exporter = GatedExporter;
};

// Has no room for the first profile, and never will.
class RefusingExporter : public KeepingExporter {
 public:
  using KeepingExporter::KeepingExporter;
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    if (request.profile.sequence == 1) return absl::OutOfRangeError("413");
    return KeepingExporter::Export(request);
  }
};
struct RefusingTraits : ManualTraits {
  using Exporter = RefusingExporter;
};

class ExportWorkerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    KeepingExporter::Take();
    KeepingExporter::FailNext(0);
    GatedExporter::Reset();
  }
  Stats StatsOf(const auto& worker) {
    Stats stats;
    worker.AddTo(stats);
    return stats;
  }
};

TEST_F(ExportWorkerTest, SendsWhatIsSubmittedWithTheColumnsThatAreWanted) {
  ExportWorker<ManualTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  EXPECT_TRUE(worker.IsIdle());
  worker.Submit(Job(7, {0, 2}));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  EXPECT_TRUE(worker.IsIdle());
  const std::vector<Profile> kept = KeepingExporter::Take();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_THAT(kept[0].value_types, ElementsAre(ValueType{"a", "count"}, ValueType{"c", "count"}));
  EXPECT_THAT(kept[0].values, ElementsAre(1, 300));
  EXPECT_EQ(StatsOf(worker).exports, 1u);
  EXPECT_EQ(StatsOf(worker).last_export_path, "kept");
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(ExportWorkerTest, WhatFailedIsSentAgainUnchangedAndBeforeWhatCameLater) {
  ExportWorker<ManualTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  KeepingExporter::FailNext(2);
  worker.Submit(Job(1));
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(worker.IsIdle());
  worker.Retry();
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatsOf(worker).exports_failed, 2u);
  EXPECT_EQ(StatsOf(worker).last_export_error, "the exporter was told to fail");
  worker.Submit(Job(2));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  const std::vector<Profile> kept = KeepingExporter::Take();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].sequence, 1u);
  EXPECT_THAT(kept[0].values, ElementsAre(1, 20, 300)) << "filled once, not anew with every try";
  EXPECT_EQ(kept[1].sequence, 2u);
  EXPECT_EQ(StatsOf(worker).last_export_error, "");
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(ExportWorkerTest, WhatIsRefusedForGoodIsDroppedAndCounted) {
  ExportWorker<RefusingTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  worker.Submit(Job(1));
  EXPECT_TRUE(absl::IsOutOfRange(worker.Wait(In(60)))) << "a caller that waits for it is told";
  EXPECT_TRUE(worker.IsIdle()) << "nothing keeps the next from being sent";
  EXPECT_EQ(StatsOf(worker).last_export_error, "413");
  worker.Submit(Job(2, {1}));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  EXPECT_THAT(SequencesKept(), ElementsAre(2));
  const Stats stats = StatsOf(worker);
  EXPECT_EQ(stats.exports, 1u);
  EXPECT_EQ(stats.exports_failed, 1u);
  EXPECT_EQ(stats.exports_dropped, 1u);
  EXPECT_EQ(stats.amount_dropped, 20) << "of the type that is shown by default";
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(ExportWorkerTest, WhatHasFailedWhenTheSessionEndsIsCountedAsDropped) {
  ExportWorker<ManualTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  KeepingExporter::FailNext(1);
  worker.Submit(Job(1));
  EXPECT_EQ(worker.End(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatsOf(worker).exports_dropped, 1u);
  EXPECT_EQ(StatsOf(worker).amount_dropped, 20);
}

TEST_F(ExportWorkerTest, OfTwoJobsOneMayFail) {
  ExportWorker<ManualTraits> worker(ExporterOptions{});
  KeepingExporter::FailNext(1);
  worker.Submit(Job(1));
  worker.Submit(Job(2));
  ASSERT_TRUE(worker.Begin());
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(SequencesKept(), ElementsAre(2));
  EXPECT_TRUE(worker.End(In(60)).code() == absl::StatusCode::kUnavailable)
      << "the other was tried, and its failure is the end's";
}

TEST_F(ExportWorkerTest, ABlockedExporterIsLeftBehindAndNobodyElseWaits) {
  ExportWorker<GatedTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  worker.Submit(Job(1));
  GatedExporter::WaitUntilEntered();
  EXPECT_EQ(StatsOf(worker).exports, 0u) << "answered while the exporter stands in its export";
  EXPECT_FALSE(worker.IsIdle());
  worker.Submit(Job(2));
  EXPECT_EQ(worker.End(In(0)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(worker.HasEnded());
  GatedExporter::Open();
  EXPECT_THAT(GatedExporter::WaitForSequences(2), ElementsAre(1, 2))
      << "what was submitted was still tried";
  while (!worker.HasEnded()) std::this_thread::yield();
  EXPECT_EQ(StatsOf(worker).exports, 2u);
}

TEST_F(ExportWorkerTest, WhereNobodyWaitsTheLastProfileIsStillTried) {
  {
    ExportWorker<GatedTraits> worker(ExporterOptions{});
    ASSERT_TRUE(worker.Begin());
    worker.Submit(Job(1));
    static_cast<void>(worker.End(std::chrono::steady_clock::now() - std::chrono::seconds(1)));
  }
  GatedExporter::Open();
  EXPECT_THAT(GatedExporter::WaitForSequences(1), ElementsAre(1));
}

TEST_F(ExportWorkerTest, AThreadThatIsRefusedIsReported) {
  ManualPlatform::With([](auto& state) { state.threads_left = 0; });
  ExportWorker<ManualTraits> worker(ExporterOptions{});
  EXPECT_FALSE(worker.Begin());
}

struct BrokenEncoder : testing::ArchetypeEncoder {
  absl::StatusOr<std::string> Encode(const Profile& /*profile*/, const Symbols& /*symbols*/) {
    return absl::InternalError("the encoder is broken");
  }
};
struct BrokenSymbolizer : testing::ArchetypeSymbolizer {
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) {
    return absl::InternalError("the symbolizer is broken");
  }
};
struct BrokenEncoderTraits : ManualTraits {
  using Encoder = BrokenEncoder;
};
struct BrokenSymbolizerTraits : ManualTraits {
  using Symbolizer = BrokenSymbolizer;
};

TEST_F(ExportWorkerTest, AnEncodersErrorIsTheExports) {
  ExportWorker<BrokenEncoderTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  worker.Submit(Job(1));
  EXPECT_THAT(std::string(worker.End(In(60)).message()), HasSubstr("the encoder is broken"));
  EXPECT_TRUE(SequencesKept().empty());
}

TEST_F(ExportWorkerTest, AProfileWithoutNamesIsWorthMoreThanNone) {
  ExportWorker<BrokenSymbolizerTraits> worker(ExporterOptions{});
  ASSERT_TRUE(worker.Begin());
  worker.Submit(Job(1));
  EXPECT_TRUE(worker.End(In(60)).ok());
  EXPECT_THAT(SequencesKept(), ElementsAre(1));
}

}  // namespace
}  // namespace strobe::internal
