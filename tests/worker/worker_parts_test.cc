#include "strobe/worker/worker_parts.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "can_begin_workers.h"
#include "strobe/own_parts.h"

namespace strobe {
namespace {

// Counts the profiles.
class CountingExporter {
 public:
  explicit CountingExporter(std::shared_ptr<std::atomic<int>> count) : count_(std::move(count)) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    ++*count_;
    return std::string("counted");
  }

 private:
  std::shared_ptr<std::atomic<int>> count_;
};
// What the program itself measures.
struct QueueProvider {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"requests", "count"},
                                                        ValueType{"queued", "nanoseconds"}};
  [[nodiscard]] bool enabled() const { return true; }
};
struct CountedTraits : DefaultTraits {
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, OffCpuTimeProvider, QueueProvider>;
  using Outputs = OutputList<Output<PprofEncoder, CountingExporter>>;
};

// Returns how many profiles the program's own exporter has got; less than 0 if events are lost.
int ProfilesOfASession() {
  char name[] = "program";
  char* arguments[] = {name, nullptr};
  const auto count = std::make_shared<std::atomic<int>>(0);
  const Parts<CountedTraits> parts{.exporter = CountingExporter(count)};
  RunWorkerIfAsked<CountedTraits>(1, arguments, parts);
  BasicProfiler<CountedTraits> profiler({.worker = {.enabled = true,
                                                    .command = "/nonexistent",
                                                    .fallback = WorkerFallback::kInProcess}},
                                        parts);
  const Registration registration = profiler.RegisterThread("main");
  if (profiler.CaptureHere<QueueProvider>({1, 1})) return -1;  // there is no session
  if (!profiler.Start().ok()) return -2;
  // The sum of what is brought while recordings run.
  std::atomic<bool> is_over{false};
  std::int64_t brought = 0;
  std::thread unregistered([&] {
    while (!is_over) brought += profiler.CaptureHere<QueueProvider>({1, 7}) ? 1 : 0;
  });
  std::int64_t requests = 0;
  std::int64_t queued_ns = 0;
  // The first recordings may end before the unwind tables of this code are there.
  constexpr int kMostRecordings = 2000;
  absl::Status status;
  for (int i = 0; i < kMostRecordings && requests == 0 && status.ok(); ++i) {
    const absl::StatusOr<Profile> profile = profiler.Record(
        {.duration = std::chrono::milliseconds(50), .value_types = {"requests", "queued"}});
    status = profile.status();
    if (!profile.ok() || profile->value_types.size() != 2) break;
    for (std::size_t row = 0; row < profile->samples.size(); ++row) {
      requests += profile->Values(row)[0];
      queued_ns += profile->Values(row)[1];
    }
  }
  is_over = true;
  unregistered.join();
  if (!status.ok()) return -3;
  if (requests <= 0 || requests > brought || queued_ns != 7 * requests) return -4;
  if (!profiler.Flush().ok() || !profiler.Stop().ok()) return -5;
  return *count;
}

// In a child: later tests have no parts named by this one.
TEST(WorkerParts, TheProgramsOwnPartsAreUsed) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  EXPECT_EXIT(std::exit(ProfilesOfASession()), ::testing::ExitedWithCode(2), "in process");
}

}  // namespace
}  // namespace strobe
