// Slow spans in whole programs: their samples, and only theirs, are under slow=true, and all of
// them add up to the threads' clocks.
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collecting_exporter.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"
#include "strobe/testing/pprof_reader.h"
#include "support/until_seen.h"

namespace strobe::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSlowOverNs = 100 * kMs;

using Exports = std::vector<CollectingExporter::Exported>;

// What the clock said of a request. On a busy machine, a fast one may take long.
enum class Speed : std::uint8_t { kFast, kSlow, kUnknown };

// Burns CPU time in a request with the label "request", and in the span that `begin` makes.
template <class Begin>
Speed Serve(std::int64_t request, std::int64_t burn_ns, const Begin& begin) {
  const std::int64_t before_ns = MonotonicNs();
  std::int64_t least_ns = 0;
  {
    const auto span = begin();
    const std::int64_t begun_ns = MonotonicNs();
    {
      const ScopedLabels labels({{"request", request}});
      BurnCpu(burn_ns);
    }
    least_ns = MonotonicNs() - begun_ns;
  }
  if (least_ns > kSlowOverNs) return Speed::kSlow;
  return MonotonicNs() - before_ns <= kSlowOverNs ? Speed::kFast : Speed::kUnknown;
}

// A thread that serves 100 fast requests and 3 slow ones in each round.
struct Server {
  static constexpr std::int64_t kRequests = 103;

  std::string name;
  Span cpu_ns{};

  // The requests have numbers from `first` on. Sets their `speeds`.
  template <class Begin>
  void Run(BasicProfiler<CollectingTraits>& profiler, std::int64_t first,
           std::vector<Speed>& speeds, const Begin& begin) {
    const std::int64_t begin_ns = ThreadCpuNs();
    {
      const Registration registration = profiler.RegisterThread(name);
      const std::int64_t registered_ns = ThreadCpuNs();
      for (std::int64_t i = 0; i < kRequests; ++i) {
        const bool is_slow = i % 40 == 20;
        speeds[static_cast<std::size_t>(first + i)] =
            Serve(first + i, is_slow ? kSlowOverNs + 50 * kMs : 5 * kMs, begin);
      }
      cpu_ns.least += ThreadCpuNs() - registered_ns;
    }
    cpu_ns.most += ThreadCpuNs() - begin_ns;
  }
};

bool IsSlow(const LabelSet& set) { return set.Text(kSlowLabel) == "true"; }

// A request's row is under slow if the request was.
void CheckRequests(const Exports& exports, const std::vector<Speed>& speeds) {
  for (const auto& [profile, bytes] : exports) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const auto request = static_cast<std::size_t>(profile.Labels(i).Number("request"));
      if (request == 0 || speeds[request] == Speed::kUnknown) continue;
      const bool is_slow = speeds[request] == Speed::kSlow;
      EXPECT_EQ(IsSlow(profile.Labels(i)), is_slow) << "request " << request;
    }
  }
}

// What a pprof file says of the samples with the label slow=true.
std::int64_t SlowCpuNsOf(const std::string& bytes) {
  const auto read = ReadPprof(bytes);
  EXPECT_TRUE(read.has_value());
  if (!read) return 0;
  std::int64_t sum = 0;
  for (const PprofProfile::Sample& sample : read->samples) {
    for (const PprofProfile::Label& label : sample.labels)
      sum += label.key == kSlowLabel && label.text == "true" ? sample.values[1] : 0;
  }
  return sum;
}

// No period ends in the middle of a request.
TEST(SlowSpans, OnlyTheirSamplesAreUnderSlowAndAllAddUp) {
  CollectingExporter::Take();
  Server zones{.name = "zones"};
  Server traces{.name = "traces"};
  std::vector<Speed> speeds{Speed::kUnknown};  // there is no request 0
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  const auto serve = [&] {
    const auto first = static_cast<std::int64_t>(speeds.size());
    speeds.resize(speeds.size() + 2 * Server::kRequests);
    std::thread with_zones([&] {
      zones.Run(profiler, first, speeds,
                [] { return ScopedZone("request", {.slow_over_ns = kSlowOverNs}); });
    });
    std::thread with_traces([&] {
      traces.Run(profiler, first + Server::kRequests, speeds,
                 [] { return ScopedTrace(1, 2, 3, SpanOptions{.slow_over_ns = kSlowOverNs}); });
    });
    with_zones.join();
    with_traces.join();
    EXPECT_TRUE(profiler.Flush().ok());
  };
  WaitUntil([&] {
    serve();
    return CollectingExporter::HasRow([](const Profile& profile, std::size_t row) {
      return IsSlow(profile.Labels(row)) && profile.Labels(row).Number("request") != 0;
    });
  });
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().spans_overflowed, 0U);
  const Exports exports = CollectingExporter::Take();
  for (const Server& server : {zones, traces}) {
    const std::int64_t cpu_ns = SumOfThread(exports, "cpu", server.name);
    EXPECT_GE(cpu_ns, server.cpu_ns.least) << server.name;
    EXPECT_LE(cpu_ns, server.cpu_ns.most) << server.name;
  }
  CheckRequests(exports, speeds);
  const std::int64_t slow_ns =
      SumIf(exports, "cpu", [](const Profile& profile, const ProfileSample& sample) {
        return IsSlow(profile.label_sets[sample.labels]);
      });
  std::int64_t slow_in_pprof_ns = 0;
  for (const auto& [profile, bytes] : exports) slow_in_pprof_ns += SlowCpuNsOf(bytes);
  EXPECT_EQ(slow_in_pprof_ns, slow_ns);
}

// Whether the samples of a period with the label "phase" are under slow; nothing if there are none,
// or if both occur.
std::string SlownessOf(const Exports& exports, std::string_view phase) {
  std::string slowness;
  for (const auto& [profile, bytes] : exports) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      if (profile.Labels(i).Text("phase") != phase) continue;
      const std::string_view text = IsSlow(profile.Labels(i)) ? "slow" : "not slow";
      if (slowness.empty()) slowness = text;
      if (slowness != text) return "";
    }
  }
  return slowness;
}

// Works, on the only thread, under the label `phase` until it has been sampled, and until the clock
// says `until_ns`.
void Work(BasicProfiler<CollectingTraits>& profiler, std::string_view phase,
          std::int64_t until_ns) {
  const ScopedLabels labels({{"phase", phase}});
  // Drains what was sampled before; the period goes on.
  EXPECT_TRUE(profiler.Record(std::chrono::milliseconds(1)).ok());
  const std::uint64_t before = profiler.stats().samples;
  WorkUntil([&] { return profiler.stats().samples > before; }, [] { BurnCpu(kMs); });
  while (MonotonicNs() <= until_ns) BurnCpu(kMs);
}

TEST(SlowSpans, APeriodThatEndsInOneJudgesByTheTimeSoFar) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  const Registration registration = profiler.RegisterThread("main");
  const std::int64_t begin_ns = MonotonicNs();
  constexpr std::int64_t kOverNs = 1000 * kMs;
  {
    const ScopedZone zone("request", {.slow_over_ns = kOverNs});
    const std::int64_t begun_ns = MonotonicNs();
    Work(profiler, "first", 0);
    ASSERT_TRUE(profiler.Flush().ok());
    const bool was_quick = MonotonicNs() - begin_ns <= kOverNs;
    const std::string first = SlownessOf(CollectingExporter::Take(), "first");
    if (was_quick) {
      EXPECT_EQ(first, "not slow");
    }
    Work(profiler, "second", begun_ns + kOverNs);
    ASSERT_TRUE(profiler.Flush().ok());
    EXPECT_EQ(SlownessOf(CollectingExporter::Take(), "second"), "slow");
    Work(profiler, "third", 0);
  }
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(SlownessOf(CollectingExporter::Take(), "third"), "slow");
}

}  // namespace
}  // namespace strobe::testing
