#include "strobe/worker/worker_parts.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
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
struct CountedTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, CountingExporter>>;
};

// Returns how many profiles the program's own exporter has got.
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
  if (!profiler.Start().ok() || !profiler.Flush().ok() || !profiler.Stop().ok()) return -1;
  return *count;
}

// In a child: later tests have no parts named by this one.
TEST(WorkerParts, TheProgramsOwnExporterGetsTheProfiles) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  EXPECT_EXIT(std::exit(ProfilesOfASession()), ::testing::ExitedWithCode(2), "in process");
}

}  // namespace
}  // namespace strobe
