// Labels in whole programs: each sample has those of what its thread was doing, and all samples of
// a thread add up to its CPU time.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collecting_exporter.h"
#include "named_stacks.h"
#include "strobe/process_label.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"
#include "strobe/testing/profile_check.h"
#include "support/until_seen.h"

namespace strobe::testing {

constexpr std::int64_t kMs = 1'000'000;

// Not in the anonymous namespace: these names are what a reader of the profile looks for. Each is
// called under labels of its own, and does something of its own after its call.
std::atomic<int> labels_sink;
__attribute__((noinline)) void RunPay() {
  BurnCpu(5 * kMs);
  labels_sink.store(1, std::memory_order_relaxed);
}
__attribute__((noinline)) void RunCharge() {
  BurnCpu(4 * kMs);
  labels_sink.store(2, std::memory_order_relaxed);
}
__attribute__((noinline)) void RunInner() {
  BurnCpu(3 * kMs);
  labels_sink.store(3, std::memory_order_relaxed);
}
__attribute__((noinline)) void RunHanded() {
  BurnCpu(3 * kMs);
  labels_sink.store(4, std::memory_order_relaxed);
}

namespace {

using Exports = std::vector<CollectingExporter::Exported>;

// A function, and the labels under which alone it is called.
struct Scope {
  std::string function;
  std::string endpoint{};
  std::string step{};
  std::string zone{};
  std::string level{};

  [[nodiscard]] bool HasLabelsOf(const NamedStack& stack) const {
    return stack.Label("endpoint") == endpoint && stack.Label("step") == step &&
           stack.Label("zone_path") == zone && stack.Label("level") == level;
  }
};

// Whether all scopes have been seen on that thread.
bool HaveBeenSeen(StackSearch& search, std::string_view thread, const std::vector<Scope>& scopes) {
  return std::all_of(scopes.begin(), scopes.end(), [&](const Scope& scope) {
    return search.Finds([&](const NamedStack& stack) {
      return stack.Label("thread_name") == thread && scope.HasLabelsOf(stack) &&
             (kSignalsAreLate || stack.Has(scope.function));
    });
  });
}

// Each sample in a scope's function has the labels of the scope. Those that come just before or
// after it, where the labels change, are in none of these functions.
void ExpectLabelsOfScopes(const Exports& exports, const std::vector<Scope>& scopes) {
  // Where another thread walks a stack that it has copied, it reads the labels a little later.
  if (kSignalsAreLate || NativePlatform::kCopiesStacks) return;
  for (const NamedStack& stack : NamedStacksOf(exports)) {
    for (const Scope& scope : scopes) {
      EXPECT_TRUE(!stack.Has(scope.function) || scope.HasLabelsOf(stack))
          << scope.function << ": " << ::testing::PrintToString(stack.labels);
    }
  }
}

// Registers the calling thread and does round() 20 times and until `is_done`. Returns what the
// profile must say.
template <class Round>
Span RunRounds(BasicProfiler<CollectingTraits>& profiler, const std::string& name,
               const std::atomic<bool>& is_done, const Round& round) {
  const auto rounds = [&] {
    for (int i = 0; i < 20 || !is_done.load(); ++i) round();
  };
  return RunBracketed(profiler, name, rounds).cpu;
}

const std::vector<Scope> kLabelScopes{
    {.function = "RunPay", .endpoint = "/pay"},
    {.function = "RunCharge", .endpoint = "/pay", .step = "+charge"},
    {.function = "RunInner", .endpoint = "/inner", .step = "+charge"},
    {.function = "RunHanded", .endpoint = "/handed"}};

void LabelRound(Labels handed_over) {
  const ScopedLabels pay({{"endpoint", "/pay"}});
  RunPay();
  {
    const ScopedLabels step({{"step", "+charge"}});
    RunCharge();
    const ScopedLabels inner({{"endpoint", "/inner"}});
    RunInner();
  }
  RunPay();
  const ScopedLabels other(handed_over);
  RunHanded();
}

TEST(Labels, AreThoseOfWhatTheThreadDoesAndAddUp) {
  CollectingExporter::Take();
  constexpr std::size_t kThreads = 3;
  const auto name_of = [](std::size_t i) { return absl::StrCat("worker", i); };
  std::vector<Span> cpu_ns(kThreads);
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  const Labels handed_over = Labels::Of({{"endpoint", "/handed"}});
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      cpu_ns[i] = RunRounds(profiler, name_of(i), is_done, [&] { LabelRound(handed_over); });
    });
  }
  StackSearch search;
  WaitUntil([&] {
    EXPECT_TRUE(profiler.Flush().ok());
    bool have_all = true;
    for (std::size_t i = 0; i < kThreads; ++i)
      have_all = have_all && HaveBeenSeen(search, name_of(i), kLabelScopes);
    return have_all;
  });
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().labels_overflowed, 0u);
  const Exports exports = CollectingExporter::Take();
  ExpectLabelsOfScopes(exports, kLabelScopes);
  for (std::size_t i = 0; i < kThreads; ++i) ExpectWithin(exports, "cpu", name_of(i), cpu_ns[i]);
}

// The zones at the root of the sample's stack, outermost first, as a path.
std::string ZonesInStack(const Profile& profile, const ProfileSample& sample) {
  std::string path;
  VisitFrames(profile, sample, [&](const Frame& frame) {
    if (!frame.is_zone()) {
      EXPECT_EQ(path, "") << "a frame of code above a zone";
      return;
    }
    path = absl::StrCat(std::string(profile.PseudoName(frame)), path.empty() ? "" : ";", path);
  });
  return path;
}

const std::vector<Scope> kZoneScopes{
    {.function = "RunPay", .zone = "request"},
    {.function = "RunInner", .zone = "request;parse"},
    {.function = "RunHanded", .endpoint = "/pay", .zone = "request"}};

void ZoneRound() {
  const ScopedZone request("request");
  RunPay();
  {
    const ScopedZone parse("parse");
    RunInner();
  }
  const ScopedLabels pay({{"endpoint", "/pay"}});
  RunHanded();
}

TEST(Zones, AreThoseOfWhatTheThreadDoesAndStandAtTheRootOfItsStacks) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 250}, .collector = {.zone_frames = true}});
  ASSERT_TRUE(profiler.Start().ok());
  std::atomic<bool> is_done{false};
  Span cpu_ns;
  std::thread thread([&] { cpu_ns = RunRounds(profiler, "zoned", is_done, ZoneRound); });
  StackSearch search;
  WaitUntil([&] {
    EXPECT_TRUE(profiler.Flush().ok());
    return HaveBeenSeen(search, "zoned", kZoneScopes);
  });
  is_done = true;
  thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ExpectLabelsOfScopes(exports, kZoneScopes);
  ExpectWithin(exports, "cpu", "zoned", cpu_ns);
  for (const auto& [profile, bytes] : exports) {
    EXPECT_EQ(CheckProfile(profile), "");
    for (std::size_t i = 0; i < profile.samples.size(); ++i)
      EXPECT_EQ(ZonesInStack(profile, profile.samples[i]), profile.Labels(i).Text(kZoneLabel));
  }
}

// Labels change as fast as they can while samples come: each sample has a set that was set.
TEST(Labels, AreNeverTorn) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      const Registration registration = profiler.RegisterThread("writer");
      const std::int64_t end_ns = ThreadCpuNs() + 200 * kMs;
      for (std::int64_t i = 0; !is_done.load() || ThreadCpuNs() < end_ns; ++i) {
        for (std::int64_t k = 0; k < 100; ++k) {
          const std::int64_t a = (i + k) % 64;
          const ScopedLabels labels({{"a", a}, {"b", a + 1000}});
          // While the table is asked for the inner set, the outer one holds: half of the time has
          // labels.
          const ScopedLabels inner({{"a", a + 1}, {"b", a + 1001}});
        }
      }
    });
  }
  WaitUntil([&] {
    EXPECT_TRUE(profiler.Flush().ok());
    return CollectingExporter::HasRow([](const Profile& profile, std::size_t row) {
      return profile.Labels(row).Number("b") != 0;
    });
  });
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  for (const auto& [profile, bytes] : CollectingExporter::Take()) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const LabelSet& set = profile.Labels(i);
      if (set.Number("b") == 0) continue;
      EXPECT_EQ(set.Number("b"), set.Number("a") + 1000);
    }
  }
}

// What the whole program does is in the samples of all threads, also of those that wait. A thread's
// own label goes before it.
TEST(Labels, OfTheProcessAreInTheSamplesOfAllThreads) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 250, .wall_frequency_hz = 50}});
  ASSERT_TRUE(profiler.Start().ok());
  ProcessLabel level("level", "forest");
  // A wait in which ThreadSanitizer delivers signals; not in that of a std::latch.
  std::mutex mutex;
  std::condition_variable ended;
  bool is_over = false;
  std::thread waiting([&] {
    const Registration registration = profiler.RegisterThread("waiting");
    std::unique_lock lock(mutex);
    ended.wait(lock, [&] { return is_over; });
  });
  const auto work_until = [&](std::string_view thread, std::string_view value, const auto& work) {
    const auto is_seen = [=](const Profile& profile, std::size_t row) {
      return profile.Labels(row).Text("level") == value &&
             profile.Labels(row).Text(kThreadNameLabel) == thread;
    };
    WorkUntilExported(profiler, is_seen, work);
  };
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("working");
    work_until("working", "forest", RunPay);
    work_until("waiting", "forest", RunPay);
    level.Set("desert");
    work_until("working", "desert", RunCharge);
    work_until("waiting", "desert", RunCharge);
    const ScopedLabels own({{"level", "own"}});
    work_until("working", "own", RunInner);
  }).join();
  {
    const std::lock_guard lock(mutex);
    is_over = true;
  }
  ended.notify_one();
  waiting.join();
  ASSERT_TRUE(profiler.Stop().ok());
  ExpectLabelsOfScopes(CollectingExporter::Take(), {{.function = "RunPay", .level = "forest"},
                                                    {.function = "RunCharge", .level = "desert"},
                                                    {.function = "RunInner", .level = "own"}});
}

// A request's span is in its samples, also while spans change as fast as they can.
TEST(Traces, AreInTheSamplesAndNeverMixed) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  std::int64_t traced_ns = 0;
  const auto is_last = [](const Profile& profile, std::size_t row) {
    return profile.Labels(row).Number(kTraceIdLabel) == 7;
  };
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("traced");
    const std::int64_t begin_ns = ThreadCpuNs();
    for (std::uint64_t i = 8; ThreadCpuNs() < begin_ns + 200 * kMs;) {
      for (int k = 0; k < 1000; ++k, ++i) const ScopedTrace trace(i, 2 * i, 3 * i);
    }
    const ScopedTrace last(7, 14, 21);
    WorkUntilExported(profiler, is_last, RunPay);
    traced_ns = ThreadCpuNs() - begin_ns;
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  for (const auto& [profile, bytes] : exports) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const LabelSet& set = profile.Labels(i);
      const std::int64_t trace_id = set.Number(kTraceIdLabel);
      EXPECT_EQ(set.Number(kSpanIdLabel), 2 * trace_id);
      EXPECT_EQ(set.Number(kLocalRootSpanIdLabel), 3 * trace_id);
    }
  }
  if (!kSignalsAreLate && !NativePlatform::kCopiesStacks) {
    for (const NamedStack& stack : NamedStacksOf(exports))
      EXPECT_TRUE(!stack.Has("RunPay") || stack.Label("trace_id") == "0000000000000007")
          << ::testing::PrintToString(stack.labels);
  }
  EXPECT_GE(SumOfThread(exports, "cpu", "traced"), traced_ns);
}

// Whether a sample has a stack. The first may come before the table of its code.
bool HasStack(const Stats& stats) {
  return stats.samples > stats.drops[static_cast<std::size_t>(DropReason::kNoTable)];
}

// A thread that registers in the middle of a scope begins with the labels of the scope. Its samples
// have all of its time, but for those without a stack.
TEST(Labels, HoldForARegistrationThatBeginsLater) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler;
  ASSERT_TRUE(profiler.Start().ok());
  Span cpu_ns;
  {
    const ScopedLabels labels({{"endpoint", "/early"}});
    const auto work = [&] {
      WorkUntil([&] { return HasStack(profiler.stats()); }, [] { BurnCpu(10 * kMs); });
    };
    cpu_ns = RunBracketed(profiler, "main", work).cpu;
  }
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  ASSERT_EQ(exports.size(), 1U);
  ExpectWithin(exports, "cpu", "main", cpu_ns);
  const std::int64_t unlabelled_ns =
      SumIf(exports, "cpu", [](const Profile& profile, const ProfileSample& sample) {
        return !HasPseudoFrame(profile, sample, PseudoFrame::kLost) &&
               !HasPseudoFrame(profile, sample, PseudoFrame::kResidual) &&
               profile.label_sets[sample.labels].Text("endpoint") != "/early";
      });
  EXPECT_EQ(unlabelled_ns, 0);
}

}  // namespace
}  // namespace strobe::testing
