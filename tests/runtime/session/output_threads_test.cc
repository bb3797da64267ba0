#include "strobe/runtime/session/output_threads.h"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../export_jobs.h"
#include "../manual_traits.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/runtime/session/monitor.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using testing::ManualExporter;
using testing::ManualPlatform;
using testing::ManualTraits;

std::chrono::steady_clock::time_point In(int seconds) {
  return std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
}

std::vector<std::uint64_t> SequencesKept() {
  std::vector<std::uint64_t> sequences;
  for (const Profile& profile : ManualExporter::Take()) sequences.push_back(profile.sequence);
  return sequences;
}

// Holds exporters in their Export until it is opened.
class Gate {
 public:
  void Pass(std::uint64_t sequence) {
    const std::lock_guard lock(monitor_);
    ++entered_;
    monitor_.NotifyAll();
    monitor_.WaitFor([&] { return is_open_; });
    sequences_left_.push_back(sequence);
    monitor_.NotifyAll();
  }
  void Open() {
    const std::lock_guard lock(monitor_);
    is_open_ = true;
    monitor_.NotifyAll();
  }
  void WaitUntilEntered() {
    const std::lock_guard lock(monitor_);
    monitor_.WaitFor([&] { return entered_ != 0; });
  }
  // The profiles that have passed, once there are so many.
  std::vector<std::uint64_t> WaitForSequences(std::size_t count) {
    const std::lock_guard lock(monitor_);
    monitor_.WaitFor([&] { return sequences_left_.size() >= count; });
    return sequences_left_;
  }

 private:
  Monitor monitor_;
  bool is_open_ = false;
  int entered_ = 0;
  std::vector<std::uint64_t> sequences_left_;
};
struct GatedExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    gate->Pass(request.profile.sequence);
    return std::string("beyond the gate");
  }
  std::shared_ptr<Gate> gate;  // outlives the test where an exporter is left behind
};
struct GatedTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, GatedExporter>>;
};

// Has no room for the first profile, and never will.
class RefusingExporter : public ManualExporter {
 public:
  using ManualExporter::ManualExporter;
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    if (request.profile.sequence == 1) return absl::OutOfRangeError("413");
    return ManualExporter::Export(request);
  }
};
struct RefusingTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, RefusingExporter>>;
};

class OutputThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    ManualExporter::Take();
    ManualExporter::FailNext(0);
  }
  const std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  Stats StatsOf(const auto& worker) {
    Stats stats;
    worker.AddTo(stats);
    return stats;
  }
};

TEST_F(OutputThreadsTest, SendsWhatIsSubmitted) {
  OutputThreads<ManualTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  EXPECT_TRUE(worker.IsIdle());
  worker.Submit(Job(7));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  EXPECT_TRUE(worker.IsIdle());
  const std::vector<Profile> kept = ManualExporter::Take();
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_THAT(kept[0].values, ElementsAre(1, 20, 300));
  EXPECT_EQ(StatsOf(worker).exports, 1u);
  EXPECT_EQ(StatsOf(worker).last_export_path, "kept");
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(OutputThreadsTest, WhatFailedIsSentAgainUnchangedAndBeforeWhatCameLater) {
  OutputThreads<ManualTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  ManualExporter::FailNext(2);
  worker.Submit(Job(1));
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(worker.IsIdle());
  worker.Retry();
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatsOf(worker).exports_failed, 2u);
  EXPECT_EQ(StatsOf(worker).last_export_error, "the exporter was told to fail");
  worker.Submit(Job(2));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  const std::vector<Profile> kept = ManualExporter::Take();
  ASSERT_EQ(kept.size(), 2u);
  EXPECT_EQ(kept[0].sequence, 1u);
  EXPECT_THAT(kept[0].values, ElementsAre(1, 20, 300)) << "filled once, not anew with every try";
  EXPECT_EQ(kept[1].sequence, 2u);
  EXPECT_EQ(StatsOf(worker).last_export_error, "");
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(OutputThreadsTest, WhatIsRefusedForGoodIsDroppedAndCounted) {
  OutputThreads<RefusingTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  EXPECT_TRUE(absl::IsOutOfRange(worker.Wait(In(60)))) << "a caller that waits for it is told";
  EXPECT_TRUE(worker.IsIdle()) << "nothing keeps the next from being sent";
  EXPECT_EQ(StatsOf(worker).last_export_error, "413");
  worker.Submit(Job(2));
  EXPECT_TRUE(worker.Wait(In(60)).ok());
  EXPECT_THAT(SequencesKept(), ElementsAre(2));
  const Stats stats = StatsOf(worker);
  EXPECT_EQ(stats.exports, 1u);
  EXPECT_EQ(stats.exports_failed, 1u);
  EXPECT_EQ(stats.exports_dropped, 1u);
  EXPECT_EQ(stats.amount_dropped, 20) << "of the type that is shown by default";
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(OutputThreadsTest, WhatHasFailedWhenTheSessionEndsIsCountedAsDropped) {
  OutputThreads<ManualTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  ManualExporter::FailNext(1);
  worker.Submit(Job(1));
  EXPECT_EQ(worker.End(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(StatsOf(worker).exports_dropped, 1u);
  EXPECT_EQ(StatsOf(worker).amount_dropped, 20);
}

TEST_F(OutputThreadsTest, OfTwoJobsOneMayFail) {
  OutputThreads<ManualTraits> worker(ProfilerOptions{});
  ManualExporter::FailNext(1);
  worker.Submit(Job(1));
  worker.Submit(Job(2));
  ASSERT_TRUE(worker.Begin().ok());
  EXPECT_EQ(worker.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(SequencesKept(), ElementsAre(2));
  EXPECT_TRUE(worker.End(In(60)).code() == absl::StatusCode::kUnavailable)
      << "the other was tried, and its failure is the end's";
}

TEST_F(OutputThreadsTest, ABlockedExporterIsLeftBehindAndNobodyElseWaits) {
  OutputThreads<GatedTraits> worker(ProfilerOptions{}, {.exporter = GatedExporter{gate_}});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  gate_->WaitUntilEntered();
  EXPECT_EQ(StatsOf(worker).exports, 0u) << "answered while the exporter stands in its export";
  EXPECT_FALSE(worker.IsIdle());
  worker.Submit(Job(2));
  EXPECT_EQ(worker.End(In(0)).code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(worker.HasEnded());
  gate_->Open();
  EXPECT_THAT(gate_->WaitForSequences(2), ElementsAre(1, 2))
      << "what was submitted was still tried";
  while (!worker.HasEnded()) std::this_thread::yield();
  EXPECT_EQ(StatsOf(worker).exports, 2u);
}

TEST_F(OutputThreadsTest, WhereNobodyWaitsTheLastProfileIsStillTried) {
  {
    OutputThreads<GatedTraits> worker(ProfilerOptions{}, {.exporter = GatedExporter{gate_}});
    ASSERT_TRUE(worker.Begin().ok());
    worker.Submit(Job(1));
    static_cast<void>(worker.End(std::chrono::steady_clock::now() - std::chrono::seconds(1)));
  }
  gate_->Open();
  EXPECT_THAT(gate_->WaitForSequences(1), ElementsAre(1));
}

TEST_F(OutputThreadsTest, AThreadThatIsRefusedIsReported) {
  ManualPlatform::With([](auto& state) { state.threads_left = 0; });
  OutputThreads<ManualTraits> worker(ProfilerOptions{});
  EXPECT_EQ(worker.Begin(), RefusedThread("the exporter", EAGAIN));
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
  using Outputs = OutputList<Output<BrokenEncoder, ManualExporter>>;
};
struct BrokenSymbolizerTraits : ManualTraits {
  using Symbolizer = BrokenSymbolizer;
};

TEST_F(OutputThreadsTest, AnEncodersErrorIsTheExports) {
  OutputThreads<BrokenEncoderTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  EXPECT_THAT(std::string(worker.End(In(60)).message()), HasSubstr("the encoder is broken"));
  EXPECT_TRUE(SequencesKept().empty());
}

TEST_F(OutputThreadsTest, AProfileWithoutNamesIsWorthMoreThanNone) {
  OutputThreads<BrokenSymbolizerTraits> worker(ProfilerOptions{});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  EXPECT_TRUE(worker.End(In(60)).ok());
  EXPECT_THAT(SequencesKept(), ElementsAre(1));
}

// A destination whose behaviour the test sets.
struct Destination {
  std::mutex mutex;
  absl::Status status;                   // of each export
  std::vector<std::uint64_t> sequences;  // delivered
  int tries = 0;
  bool has_no_memory = false;  // for the next one

  void Set(absl::Status next) {
    const std::lock_guard lock(mutex);
    status = std::move(next);
  }
  std::vector<std::uint64_t> Delivered() {
    const std::lock_guard lock(mutex);
    return sequences;
  }
  int TakeTries() {
    const std::lock_guard lock(mutex);
    return std::exchange(tries, 0);
  }
};
struct DestinationExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const std::lock_guard lock(destination->mutex);
    ++destination->tries;
    if (std::exchange(destination->has_no_memory, false)) throw std::bad_alloc();
    if (!destination->status.ok()) return destination->status;
    destination->sequences.push_back(request.profile.sequence);
    return absl::StrCat("there, ", std::string(request.bytes));
  }
  Destination* destination;
};
// Writes the text that it was given.
struct TextEncoder {
  static constexpr std::string_view kFileSuffix = ".txt";
  static constexpr std::string_view kContentType = "text/plain";
  absl::StatusOr<std::string> Encode(const Profile& /*profile*/, const Symbols& /*symbols*/) {
    return text;
  }
  std::string text;
};
struct TwoOutputsTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, DestinationExporter>,
                             Output<TextEncoder, DestinationExporter>>;
};

class TwoOutputsTest : public OutputThreadsTest {
 protected:
  void SetUp() override {
    OutputThreadsTest::SetUp();
    ASSERT_TRUE(worker_.Begin().ok());
  }
  absl::Status SubmitAndWait(std::uint64_t sequence) {
    worker_.Submit(Job(sequence));
    return worker_.Wait(In(60));
  }

  Destination first_;
  Destination second_;
  OutputThreads<TwoOutputsTraits> worker_{
      ProfilerOptions{},
      {.outputs = {{.exporter = DestinationExporter{&first_}},
                   {.encoder = TextEncoder{"text"}, .exporter = DestinationExporter{&second_}}}}};
};

// Takes windows of what was kept, too.
struct LaneWindowExporter : DestinationExporter {
  static constexpr bool kTakesWindows = true;
};
struct LaneWindowTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, DestinationExporter>,
                             Output<TextEncoder, LaneWindowExporter>>;
};

class WindowOutputsTest : public OutputThreadsTest {
 protected:
  void SetUp() override {
    OutputThreadsTest::SetUp();
    ASSERT_TRUE(worker_.Begin().ok());
  }
  void TearDown() override { static_cast<void>(worker_.End(In(60))); }
  absl::Status SubmitWindow(std::uint64_t sequence) {
    std::unique_ptr<ExportJob> window = WindowJob(sequence);
    const std::shared_ptr<WindowOutcome> outcome = window->outcome;
    worker_.SubmitWindow(std::move(window));
    return worker_.WaitFor(*outcome, In(60));
  }

  Destination server_;
  Destination directory_;
  OutputThreads<LaneWindowTraits> worker_{
      ProfilerOptions{},
      {.outputs = {
           {.exporter = DestinationExporter{&server_}},
           {.encoder = TextEncoder{"text"}, .exporter = LaneWindowExporter{{&directory_}}}}}};
};

TEST_F(WindowOutputsTest, OnlyTheOutputsThatTakeWindowsAreAsked) {
  server_.Set(absl::UnavailableError("the server is away"));
  worker_.Submit(Job(1));
  EXPECT_EQ(worker_.Wait(In(60)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server_.TakeTries(), 1);
  EXPECT_TRUE(SubmitWindow(100).ok());
  EXPECT_TRUE(worker_.HasRoom());
  EXPECT_EQ(server_.TakeTries(), 0) << "it has the time until the next period";
  EXPECT_THAT(directory_.Delivered(), ElementsAre(1, 100));
  EXPECT_EQ(StatsOf(worker_).dumps, 1u);
}

TEST_F(WindowOutputsTest, AWindowThatFailsIsGoneAndThePeriodsGoOn) {
  directory_.Set(absl::FailedPreconditionError("Permission denied"));
  const absl::Status failed = SubmitWindow(100);
  EXPECT_EQ(failed.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(failed.message()), HasSubstr("Permission denied"));
  EXPECT_THAT(StatsOf(worker_).last_export_error, HasSubstr("Permission denied"));
  directory_.Set(absl::OkStatus());
  EXPECT_TRUE(worker_.IsIdle());
  worker_.Submit(Job(1));
  EXPECT_TRUE(worker_.End(In(60)).ok()) << "the window's error is none of the periods'";
  EXPECT_THAT(directory_.Delivered(), ElementsAre(1));
  EXPECT_THAT(server_.Delivered(), ElementsAre(1));
  const Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.dumps, 0u);
  EXPECT_EQ(stats.dumps_failed, 1u);
  EXPECT_EQ(stats.exports_dropped, 0u);
  EXPECT_EQ(stats.amount_dropped, 0);
}

// More fail than an output tries in a round.
TEST_F(WindowOutputsTest, PeriodsThatFailDoNotKeepAWindowWaiting) {
  directory_.Set(absl::UnavailableError("the disk is full"));
  for (std::uint64_t i = 1; i <= 4; ++i) {
    worker_.Submit(Job(i));
    EXPECT_FALSE(worker_.Wait(In(60)).ok());
  }
  EXPECT_EQ(SubmitWindow(100).code(), absl::StatusCode::kUnavailable);
}

struct GatedWindowExporter : GatedExporter {
  static constexpr bool kTakesWindows = true;
};
struct GatedWindowTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, GatedWindowExporter>>;
};

TEST_F(OutputThreadsTest, AWindowWaitsForAnOutputThatIsBusyAndLeavesThePeriodsTheirRoom) {
  OutputThreads<GatedWindowTraits> worker({}, {.exporter = GatedWindowExporter{{gate_}}});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  gate_->WaitUntilEntered();
  EXPECT_FALSE(worker.HasRoom());
  EXPECT_TRUE(worker.HasRoomForWindow());
  std::unique_ptr<ExportJob> window = WindowJob(100);
  const std::shared_ptr<WindowOutcome> outcome = window->outcome;
  worker.SubmitWindow(std::move(window));
  EXPECT_TRUE(absl::IsDeadlineExceeded(worker.WaitFor(*outcome, In(0))));
  gate_->Open();
  EXPECT_TRUE(worker.WaitFor(*outcome, In(60)).ok());
  EXPECT_TRUE(worker.End(In(60)).ok());
}

TEST_F(TwoOutputsTest, AnOutputThatMemoryRunsOutInIsTriedAgainAndAlone) {
  first_.has_no_memory = true;
  EXPECT_TRUE(absl::IsResourceExhausted(SubmitAndWait(1)));
  EXPECT_THAT(second_.Delivered(), ElementsAre(1));
  EXPECT_TRUE(worker_.HasRoom());
  worker_.Retry();
  EXPECT_TRUE(worker_.End(In(60)).ok());
  EXPECT_THAT(first_.Delivered(), ElementsAre(1));
  EXPECT_THAT(second_.Delivered(), ElementsAre(1)) << "not twice";
  const Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.out_of_memory, 1u);
  EXPECT_EQ(stats.exports_failed, 1u);
  EXPECT_EQ(stats.exports_dropped, 0u);
}

TEST_F(TwoOutputsTest, EachGetsEveryProfileInItsFormat) {
  EXPECT_TRUE(SubmitAndWait(1).ok());
  EXPECT_TRUE(worker_.End(In(60)).ok());
  EXPECT_THAT(first_.Delivered(), ElementsAre(1));
  EXPECT_THAT(second_.Delivered(), ElementsAre(1));
  const Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.exports, 2u) << "the sum";
  ASSERT_EQ(stats.outputs.size(), 2u);
  EXPECT_EQ(stats.outputs[0].name, "output 1 (.none)");
  EXPECT_EQ(stats.outputs[1].name, "output 2 (.txt)");
  EXPECT_EQ(stats.outputs[1].exports, 1u);
  EXPECT_EQ(stats.outputs[1].last_export_path, "there, text");
  EXPECT_EQ(stats.last_export_path, "there, ") << "of the first output";
}

TEST_F(TwoOutputsTest, AnOutputThatFailsIsRetriedForItselfWhileTheOtherGoesOn) {
  second_.Set(absl::UnavailableError("503"));
  const absl::Status failed = SubmitAndWait(1);
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_EQ(failed.message(), "output 2 (.txt): 503");
  EXPECT_FALSE(worker_.IsIdle());
  EXPECT_TRUE(worker_.HasRoom()) << "the first output waits for the next period";
  EXPECT_FALSE(SubmitAndWait(2).ok());
  EXPECT_THAT(first_.Delivered(), ElementsAre(1, 2)) << "nothing is sent to it again";
  Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.outputs[0].exports_failed, 0u);
  EXPECT_EQ(stats.outputs[0].last_export_error, "");
  EXPECT_EQ(stats.outputs[1].exports_failed, 3u) << "the first profile twice";
  EXPECT_EQ(stats.outputs[1].last_export_error, "503");
  EXPECT_EQ(stats.last_export_error, "output 2 (.txt): 503");
  second_.Set(absl::OkStatus());
  worker_.Retry();
  EXPECT_TRUE(worker_.End(In(60)).ok());
  EXPECT_THAT(second_.Delivered(), ElementsAre(1, 2));
  stats = StatsOf(worker_);
  EXPECT_EQ(stats.exports_dropped, 0u);
  EXPECT_EQ(stats.last_export_error, "");
}

TEST_F(TwoOutputsTest, ARefusalAtOneDoesNotTouchTheOther) {
  first_.Set(absl::OutOfRangeError("413"));
  EXPECT_TRUE(absl::IsOutOfRange(SubmitAndWait(1)));
  EXPECT_TRUE(worker_.IsIdle()) << "one has it, the other will never take it";
  EXPECT_TRUE(absl::IsOutOfRange(worker_.End(In(60))));
  EXPECT_THAT(second_.Delivered(), ElementsAre(1));
  const Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.outputs[0].exports_dropped, 1u);
  EXPECT_EQ(stats.outputs[0].amount_dropped, 20);
  EXPECT_EQ(stats.outputs[1].exports_dropped, 0u);
  EXPECT_EQ(stats.outputs[1].amount_dropped, 0);
}

TEST_F(OutputThreadsTest, WhereOneOfTwoThreadsIsRefusedNoneIsLeft) {
  Destination first;
  Destination second;
  ManualPlatform::With([](auto& state) { state.threads_left = 1; });
  OutputThreads<TwoOutputsTraits> worker(
      ProfilerOptions{},
      {.outputs = {{.exporter = DestinationExporter{&first}},
                   {.encoder = TextEncoder{"text"}, .exporter = DestinationExporter{&second}}}});
  EXPECT_EQ(worker.Begin(), RefusedThread("the exporter", EAGAIN));
}

struct OneHangsTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, GatedExporter>,
                             Output<TextEncoder, DestinationExporter>>;
};

TEST_F(OutputThreadsTest, AnOutputThatHangsDelaysNoOtherAndMemoryStaysBounded) {
  Destination other;
  OutputThreads<OneHangsTraits> worker(
      ProfilerOptions{},
      {.outputs = {{.exporter = GatedExporter{gate_}},
                   {.encoder = TextEncoder{"text"}, .exporter = DestinationExporter{&other}}}});
  ASSERT_TRUE(worker.Begin().ok());
  std::vector<std::uint64_t> sequences;
  constexpr std::uint64_t kPeriods = kMaxWaitingProfiles + 5;
  for (std::uint64_t i = 0; i < kPeriods; ++i) {
    sequences.push_back(i);
    worker.Submit(Job(i));
    gate_->WaitUntilEntered();
    while (other.Delivered().size() <= i) std::this_thread::yield();
    while (!worker.HasRoom()) std::this_thread::yield();
  }
  EXPECT_THAT(other.Delivered(), ElementsAreArray(sequences));
  const Stats stats = StatsOf(worker);
  EXPECT_EQ(stats.outputs[1].delivered, kPeriods);
  EXPECT_EQ(stats.outputs[0].exports_dropped, kPeriods - kMaxWaitingProfiles);
  EXPECT_TRUE(absl::IsDeadlineExceeded(worker.End(In(0))));
  gate_->Open();
  while (!worker.HasEnded()) std::this_thread::yield();
  EXPECT_EQ(StatsOf(worker).outputs[0].exports, kMaxWaitingProfiles)
      << "the first, which was being sent, and the newest";
}

// Waits until it is told to return.
struct PatientExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    entered->store(true);
    while (!request.deadline.HasPassed()) std::this_thread::sleep_for(ExportDeadline::kMaxStepMs);
    return absl::DeadlineExceededError("nothing came");
  }
  std::atomic<bool>* entered;
};
struct PatientTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, PatientExporter>>;
};

TEST_F(OutputThreadsTest, AtTheEndAnExporterIsToldToReturnAndDoes) {
  std::atomic<bool> entered{false};
  OutputThreads<PatientTraits> worker(ProfilerOptions{}, {.exporter = PatientExporter{&entered}});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  while (!entered.load()) std::this_thread::yield();
  EXPECT_EQ(worker.End(In(2)).message(), "nothing came");
  EXPECT_TRUE(worker.HasEnded()) << "it is not left behind";
  EXPECT_EQ(StatsOf(worker).exports_dropped, 1u);
}

// Keeps each profile, and delivers none.
struct SpoolingExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    ++kept.spool.waiting;
    kept.last_error = "503";
    return std::string("on disk");
  }
  [[nodiscard]] const ExporterAccount& account() const { return kept; }
  ExporterAccount kept{};
};
struct SpoolingTraits : ManualTraits {
  using Outputs = OutputList<Output<testing::ArchetypeEncoder, SpoolingExporter>>;
};

TEST_F(OutputThreadsTest, WhatAnExporterKeepsIsInTheAccountAndLeftAtTheEnd) {
  OutputThreads<SpoolingTraits> worker(ProfilerOptions{}, {.exporter = SpoolingExporter{}});
  ASSERT_TRUE(worker.Begin().ok());
  worker.Submit(Job(1));
  EXPECT_TRUE(worker.Wait(In(60)).ok()) << "it is safe";
  OutputStats output = StatsOf(worker).outputs[0];
  EXPECT_EQ(output.exports, 1u);
  EXPECT_EQ(output.delivered, 0u);
  EXPECT_EQ(output.spool.waiting, 1u);
  EXPECT_EQ(output.last_export_error, "503") << "though Export has succeeded";
  EXPECT_TRUE(worker.End(In(60)).ok());
  output = StatsOf(worker).outputs[0];
  EXPECT_EQ(output.spool.waiting, 0u);
  EXPECT_EQ(output.spool.left, 1u);
}

TEST_F(TwoOutputsTest, WhereBothFailThePeriodGoesOn) {
  first_.Set(absl::UnavailableError("503"));
  second_.Set(absl::PermissionDeniedError("403"));
  EXPECT_EQ(SubmitAndWait(1).message(), "output 1 (.none): 503") << "the first error";
  EXPECT_FALSE(worker_.HasRoom());
  first_.Set(absl::OkStatus());
  worker_.Retry();
  EXPECT_EQ(worker_.Wait(In(60)).message(), "output 2 (.txt): 403");
  EXPECT_TRUE(worker_.HasRoom());
  EXPECT_FALSE(worker_.End(In(60)).ok());
  EXPECT_EQ(StatsOf(worker_).outputs[1].exports_dropped, 1u) << "the session has ended";
}

TEST_F(TwoOutputsTest, WhatWaitsForAnOutputIsBoundedAndSoAreItsTries) {
  first_.Set(absl::UnavailableError("503"));
  std::vector<std::uint64_t> sequences;
  for (std::uint64_t i = 0; i < kMaxWaitingProfiles + 2; ++i) {
    first_.TakeTries();
    EXPECT_FALSE(SubmitAndWait(i).ok());
    EXPECT_LE(first_.TakeTries(), 2) << "a failure may take long";
    sequences.push_back(i);
  }
  EXPECT_THAT(second_.Delivered(), ElementsAreArray(sequences));
  const Stats stats = StatsOf(worker_);
  EXPECT_EQ(stats.outputs[0].exports_dropped, 2u);
  EXPECT_EQ(stats.outputs[0].amount_dropped, 40);
  EXPECT_EQ(stats.outputs[1].exports_dropped, 0u);
  first_.Set(absl::OkStatus());
  worker_.Retry();
  EXPECT_TRUE(worker_.End(In(60)).ok());
  sequences.erase(sequences.begin(), sequences.begin() + 2);
  EXPECT_THAT(first_.Delivered(), ElementsAreArray(sequences)) << "the oldest were dropped";
}

}  // namespace
}  // namespace strobe::internal
