// What is said of CPU time that no registered thread has used.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/base/sanitizers.h"
#include "strobe/testing/pprof_reader.h"

namespace strobe::testing {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kMs = 1'000'000;
constexpr const char* kFinding = "in threads that are not registered";

// Threads that use CPU time, and live until they are told to end.
class Threads {
 public:
  // Each calls begin() first, and keeps the result until its end.
  template <class Begin>
  Threads(int count, std::int64_t cpu_ns, Begin begin) {
    for (int i = 0; i < count; ++i) {
      std::promise<void> done;
      std::future<void> is_done = done.get_future();
      threads_.emplace_back([this, cpu_ns, begin, done = std::move(done)]() mutable {
        [[maybe_unused]] const auto kept = begin();
        BurnCpu(cpu_ns);
        done.set_value();
        end_.wait();
      });
      is_done.wait();
    }
  }
  ~Threads() {
    may_end_.set_value();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::promise<void> may_end_;
  std::shared_future<void> end_{may_end_.get_future()};
  std::vector<std::thread> threads_;
};

std::vector<std::string> Comments(const CollectingExporter::Exported& exported) {
  const auto profile = ReadPprof(exported.bytes);
  return profile ? profile->comments : std::vector<std::string>();
}

// ThreadSanitizer has a thread of its own.
constexpr std::uint64_t kOthers = internal::kHasThreadSanitizer ? 1 : 0;

TEST(UnregisteredThreads, AreSaidByTheDiagnosisAndTheProfile) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler;
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  {
    const Threads threads(2, 300 * kMs, [] { return 0; });
    EXPECT_THAT(profiler.Diagnose(), HasSubstr(kFinding));
    EXPECT_THAT(profiler.Diagnose(), HasSubstr("(" + std::to_string(2 + kOthers) + " threads: "));
    EXPECT_THAT(profiler.Diagnose(), HasSubstr("call RegisterThread in each"));
    ASSERT_TRUE(profiler.Flush().ok());
  }
  const std::vector<CollectingExporter::Exported> exported = CollectingExporter::Take();
  ASSERT_EQ(exported.size(), 1U);
  EXPECT_GT(exported[0].profile.stats.unregistered.share, 0.1);
  EXPECT_EQ(exported[0].profile.stats.unregistered.count, 2 + kOthers);
  EXPECT_THAT(Comments(exported[0]), Contains(HasSubstr(kFinding)));
  // The threads have ended: what the last period had is still worth a word.
  EXPECT_THAT(profiler.Diagnose(), HasSubstr("in the last period"));
  BurnCpu(200 * kMs);
  ASSERT_TRUE(profiler.Flush().ok());
  EXPECT_THAT(Comments(CollectingExporter::Take().at(0)), Each(Not(HasSubstr(kFinding))));
  EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr(kFinding)));
  ASSERT_TRUE(profiler.Stop().ok());
}

TEST(UnregisteredThreads, AreNotThoseThatHaveRegisteredNorTheProfilers) {
  if (internal::kHasThreadSanitizer)
    GTEST_SKIP() << "ThreadSanitizer's own thread uses CPU time, and is not registered";
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  const Registration registration = profiler.RegisterThread("main");
  ASSERT_TRUE(profiler.Start().ok());
  {
    const Threads threads(2, 200 * kMs, [&] { return profiler.RegisterThread("worker"); });
    EXPECT_THAT(profiler.Diagnose(), Not(HasSubstr(kFinding)));
  }
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_THAT(Comments(CollectingExporter::Take().at(0)), Each(Not(HasSubstr(kFinding))));
}

}  // namespace
}  // namespace strobe::testing
