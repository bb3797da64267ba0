// A plain Profiler of a program that links strobe-worker.
#include "strobe/worker/run_worker.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <string>

#include "can_begin_workers.h"
#include "strobe/base/sanitizers.h"
#include "strobe/own_parts.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe {
namespace {

// It looks by pipes whether it may read an object's type.
constexpr bool kChecksTypesByFiles = internal::kHasUndefinedBehaviorSanitizer;

struct NowhereExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("nowhere");
  }
};
struct OtherOutputs : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, NowhereExporter>>;
};
// A worker cannot drain channels of another layout.
struct OtherProviders : OtherOutputs {
  using Providers = ProviderList<CpuTimeProvider>;
};

ProfilerOptions WithWorker(WorkerFallback fallback) {
  return {.worker = {.enabled = true, .command = "/nonexistent", .fallback = fallback}};
}

TEST(RunWorker, ThePlainProfilerHasAWorkerIfAsked) {
  if (!testing::kCanBeginWorkers) GTEST_SKIP() << "ThreadSanitizer follows no nested clone";
  Profiler profiler(WithWorker(WorkerFallback::kNone));
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(profiler.Diagnose().find("worker process"), std::string::npos) << profiler.Diagnose();
}

TEST(RunWorker, PartsThatNoWorkerCanServeAreRefusedOrSampledInProcess) {
  BasicProfiler<OtherProviders> profiler(WithWorker(WorkerFallback::kNone));
  EXPECT_EQ(profiler.Start().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(profiler.RegisterThread("main").status().code(), absl::StatusCode::kUnimplemented);
  BasicProfiler<OtherProviders> here(WithWorker(WorkerFallback::kInProcess));
  EXPECT_TRUE(here.Start().ok());
  EXPECT_TRUE(here.Stop().ok());
}

// Where the system refuses descriptors of memory, as it does here while there may be no more files.
TEST(RunWorker, WithoutSharedMemoryItIsAProfilerWithoutAWorker) {
  if (kChecksTypesByFiles) GTEST_SKIP() << "UndefinedBehaviorSanitizer needs files itself";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  BasicProfiler<OtherOutputs> profiler(WithWorker(WorkerFallback::kInProcess));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(profiler.Start().ok());
  EXPECT_EQ(profiler.Diagnose().find("thread of the program"), std::string::npos)
      << profiler.Diagnose();
  EXPECT_TRUE(profiler.Stop().ok());
}

TEST(RunWorker, WithoutTheOptionAProfilerHasNone) {
  Profiler profiler;
  EXPECT_EQ(profiler.Diagnose().find("worker process"), std::string::npos) << profiler.Diagnose();
}

// A program that was not begun as a worker goes on. Later tests have no parts named by this one.
TEST(RunWorker, ReturnsUnlessAsked) {
  const auto child = [] {
    char name[] = "program";
    char other[] = "--strobe-workers";
    char* arguments[] = {name, other, nullptr};
    RunWorkerIfAsked(1, arguments);
    RunWorkerIfAsked(2, arguments);
    std::exit(internal::ServeHere() ? 7 : 1);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace strobe
