// An exporter that hangs or fails never stops the program, never delays draining, and loses nothing
// that it can still send.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/testing/pprof_reader.h"
#include "support/until_seen.h"

namespace strobe::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::chrono::seconds kPatience{120};

// Hangs in each Export until the gate is opened.
class Gate {
 public:
  void Close() {
    const std::lock_guard lock(mutex_);
    is_open_ = false;
    visitors_ = 0;
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    ++visitors_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return is_open_; });
  }
  void WaitForVisitor() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, kPatience, [&] { return visitors_ > 0; }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = true;
  int visitors_ = 0;
};
Gate& TheGate() {
  static auto* const gate = new Gate;  // outlives exporters that are left behind
  return *gate;
}

class GatedExporter : public CollectingExporter {
 public:
  using CollectingExporter::CollectingExporter;
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    TheGate().Pass();
    return CollectingExporter::Export(request);
  }
};
struct GatedTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, GatedExporter>>;
};

// A registered thread that is busy until it is told to end.
template <class Traits>
class BusyThread {
 public:
  explicit BusyThread(BasicProfiler<Traits>& profiler)
      : thread_([this, &profiler] {
          const std::int64_t outer_ns = ThreadCpuNs();
          {
            const Registration registration = profiler.RegisterThread("busy");
            const std::int64_t inner_ns = ThreadCpuNs();
            while (!is_ending_.load()) BurnCpu(kMs);
            cpu_.least = ThreadCpuNs() - inner_ns;
          }
          cpu_.most = ThreadCpuNs() - outer_ns;
        }) {}
  ~BusyThread() { End(); }
  // What the profile must say of it.
  Span End() {
    is_ending_ = true;
    if (thread_.joinable()) thread_.join();
    return cpu_;
  }

 private:
  std::atomic<bool> is_ending_{false};
  Span cpu_;
  std::thread thread_;
};

TEST(ExporterThatHangs, DrainingGoesOnAndNothingIsLost) {
  CollectingExporter::Take();
  TheGate().Close();
  BasicProfiler<GatedTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 500}, .exporter = {.period_s = 0.02}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread busy(profiler);
  TheGate().WaitForVisitor();
  const Stats hanging = profiler.stats();
  // Periods come and go, and drains with them.
  WaitUntil([&] { return profiler.stats().periods_extended >= hanging.periods_extended + 3; });
  WaitUntil([&] { return profiler.stats().drains >= hanging.drains + 3; });
  if (!kSignalsAreLate) WaitUntil([&] { return profiler.stats().samples >= hanging.samples + 10; });
  EXPECT_EQ(profiler.stats().exports, 0U);
  EXPECT_FALSE(profiler.Diagnose().empty());
  TheGate().Open();
  WaitUntil([&] { return profiler.stats().exports >= 2; });
  const Span cpu = busy.End();
  ASSERT_TRUE(profiler.Stop().ok());
  const std::int64_t sum = SumOfThread(CollectingExporter::Take(), "cpu", "busy");
  EXPECT_GE(sum, cpu.least);
  EXPECT_LE(sum, cpu.most);
}

TEST(ExporterThatHangs, StopLeavesItBehindAfterItsTimeout) {
  CollectingExporter::Take();
  TheGate().Close();
  BasicProfiler<GatedTraits> profiler({.exporter = {.period_s = 0.02, .stop_timeout_s = 0.1}});
  std::vector<Span> cpu;
  for (std::size_t session = 0; session < internal::kMaxAbandonedExporters; ++session) {
    ASSERT_TRUE(profiler.Start().ok());
    BusyThread busy(profiler);
    TheGate().WaitForVisitor();
    EXPECT_TRUE(absl::IsDeadlineExceeded(profiler.Flush()));
    cpu.push_back(busy.End());
    // The exporter hangs for as long as the gate is closed, so Flush and Stop end by their time-out
    // on every machine. They may take longer, but by the same clock no shorter time.
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_TRUE(absl::IsDeadlineExceeded(profiler.Stop()));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
  }
  // Threads that hang do not pile up.
  const absl::Status refused = profiler.Start();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_NE(profiler.Diagnose().find("hang"), std::string::npos) << profiler.Diagnose();
  // Left behind, they still send what they have, and make room.
  TheGate().Open();
  WaitUntil([&] { return profiler.Start().ok(); });
  // Its export may take longer than the timeout, too.
  const absl::Status stopped = profiler.Stop();
  EXPECT_TRUE(stopped.ok() || absl::IsDeadlineExceeded(stopped)) << stopped;
  // One period that hung and the last of each session, and this session's own.
  WaitUntil([&] { return profiler.stats().exports >= 2 * internal::kMaxAbandonedExporters + 1; });
  std::vector<CollectingExporter::Exported> exports;
  Span all;
  for (const Span& span : cpu) {
    all.least += span.least;
    all.most += span.most;
  }
  const auto sum = [&] { return SumOfThread(exports, "cpu", "busy"); };
  WaitUntil([&] {
    for (auto& exported : CollectingExporter::Take()) exports.push_back(std::move(exported));
    return sum() >= all.least;
  });
  EXPECT_LE(sum(), all.most);
}

// A server that has no room for the first profile, and never will.
class RefusingExporter : public CollectingExporter {
 public:
  using CollectingExporter::CollectingExporter;
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    if (request.profile.sequence == 0) return absl::OutOfRangeError("413 Payload Too Large");
    return CollectingExporter::Export(request);
  }
};
struct RefusingTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, RefusingExporter>>;
};

TEST(ExporterThatRefuses, WhatFollowsIsSentAndTheAccountAddsUp) {
  CollectingExporter::Take();
  BasicProfiler<RefusingTraits> profiler({.exporter = {.period_s = 0.05}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread busy(profiler);
  WaitUntil([&] { return profiler.stats().exports_failed >= 1; });
  WaitUntil([&] { return profiler.stats().exports >= 3; });
  const Span cpu = busy.End();
  ASSERT_TRUE(profiler.Stop().ok());
  const Stats stats = profiler.stats();
  EXPECT_EQ(stats.exports_failed, 1U) << "not tried again";
  EXPECT_EQ(stats.exports_dropped, 1U);
  EXPECT_THAT(profiler.Diagnose(), ::testing::HasSubstr("1 profiles were never delivered"))
      << "though the last export went well";
  const std::int64_t sum =
      SumOfThread(CollectingExporter::Take(), "cpu", "busy") + stats.amount_dropped;
  EXPECT_GE(sum, cpu.least);
  EXPECT_LE(sum, cpu.most);
}

class FileFailures : public ::testing::Test {
 protected:
  // What the files in `directory` say of the thread "busy".
  static std::int64_t SumOfFiles(const std::filesystem::path& directory) {
    std::int64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) {
      std::ifstream file(entry.path(), std::ios::binary);
      const auto profile = ReadPprof(std::string(std::istreambuf_iterator<char>(file), {}));
      EXPECT_TRUE(profile.has_value()) << entry.path();
      if (!profile.has_value()) continue;
      EXPECT_EQ(CheckPprof(*profile), "") << entry.path();
      for (const PprofProfile::Sample& sample : profile->samples) {
        for (const PprofProfile::Label& label : sample.labels) {
          if (label.key == "thread_name" && label.text == "busy") sum += sample.values.at(1);
        }
      }
    }
    return sum;
  }

  static void PutFileInPlaceOf(const std::filesystem::path& directory) {
    std::filesystem::remove_all(directory);
    std::ofstream(directory) << "in the way";
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path root_ = temporary_.path();
};

TEST_F(FileFailures, AFileInTheDirectorysPlaceIsRefusedAtTheStart) {
  const std::filesystem::path directory = root_ / "profiles";
  PutFileInPlaceOf(directory);
  Profiler profiler({.exporter = {.directory = directory.string()}});
  const absl::Status status = profiler.Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr(directory.generic_string()));
  EXPECT_THAT(profiler.Diagnose(), ::testing::HasSubstr(directory.generic_string()));
  std::filesystem::remove(directory);
  EXPECT_TRUE(profiler.Start().ok());
}

TEST_F(FileFailures, MissingDirectoriesAreCreated) {
  const std::filesystem::path directory = root_ / "not" / "yet" / "there";
  Profiler profiler({.exporter = {.directory = directory.string()}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread busy(profiler);
  BurnCpu(50 * kMs);
  const Span cpu = busy.End();
  EXPECT_TRUE(std::filesystem::is_empty(directory));
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_TRUE(std::filesystem::exists(profiler.stats().last_export_path))
      << profiler.stats().last_export_path;
  EXPECT_GE(SumOfFiles(directory), cpu.least);
  EXPECT_LE(SumOfFiles(directory), cpu.most);
}

TEST_F(FileFailures, AFileThatTakesTheDirectorysPlaceIsReportedAndTheProfileWaits) {
  const std::filesystem::path directory = root_ / "profiles";
  Profiler profiler({.exporter = {.directory = directory.string()}});
  ASSERT_TRUE(profiler.Start().ok());
  PutFileInPlaceOf(directory);
  BusyThread busy(profiler);
  const absl::Status failed = profiler.Flush();
  EXPECT_FALSE(failed.ok());
  EXPECT_NE(std::string(failed.message()).find(directory.generic_string()), std::string::npos)
      << failed;
  EXPECT_FALSE(profiler.Flush().ok());
  EXPECT_GE(profiler.stats().exports_failed, 2U) << "not tried again";
  EXPECT_FALSE(profiler.stats().last_export_error.empty());
  EXPECT_NE(profiler.Diagnose().find("last export failed"), std::string::npos)
      << profiler.Diagnose();
  EXPECT_EQ(profiler.stats().exports, 0U);
  std::filesystem::remove(directory);
  EXPECT_EQ(profiler.Flush(), absl::OkStatus());
  EXPECT_TRUE(profiler.stats().last_export_error.empty()) << profiler.stats().last_export_error;
  const Span cpu = busy.End();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_GE(SumOfFiles(directory), cpu.least);
  EXPECT_LE(SumOfFiles(directory), cpu.most);
}

TEST_F(FileFailures, LastExportThatFailsIsStopsStatus) {
  Profiler profiler({.exporter = {.directory = (root_ / "file" / "below").string()}});
  ASSERT_TRUE(profiler.Start().ok());
  PutFileInPlaceOf(root_ / "file");
  const absl::Status status = profiler.Stop();
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(profiler.stats().last_export_error, std::string(status.message()));
  // The next session is a new chance.
  std::filesystem::remove(root_ / "file");
  ASSERT_TRUE(profiler.Start().ok());
  EXPECT_TRUE(profiler.Stop().ok());
  EXPECT_TRUE(profiler.stats().last_export_error.empty());
}

// The process may write no file beyond a few bytes: to a writer, the same as a full disk.
// tests/platform/linux fills a real one.
TEST_F(FileFailures, NoRoomForTheFile) {
  const std::filesystem::path directory = root_ / "profiles";
  Profiler profiler({.exporter = {.directory = directory.string(), .period_s = 0.05}});
  ASSERT_TRUE(profiler.Start().ok());
  BusyThread busy(profiler);
  std::optional<FileSizeLimit> limit(16);
  if (!*limit) GTEST_SKIP() << "files of a process have no limit here";
  WaitUntil([&] { return profiler.stats().exports_failed >= 2; });
  const Stats failed = profiler.stats();
  limit.reset();
  EXPECT_FALSE(failed.last_export_error.empty());
  WaitUntil([&] { return profiler.stats().exports >= failed.exports + 2; });
  const Span cpu = busy.End();
  ASSERT_TRUE(profiler.Stop().ok());
  // Every file there is a whole profile: of those that failed, nothing was left behind.
  EXPECT_GE(SumOfFiles(directory), cpu.least);
  EXPECT_LE(SumOfFiles(directory), cpu.most);
}

}  // namespace
}  // namespace strobe::testing
