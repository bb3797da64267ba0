// Slow spans in whole programs: their samples, and only theirs, are under slow=true, and all of
// them add up to the threads' clocks.
#include <gtest/gtest.h>

#include <array>
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
#include "strobe/testing/latch.h"
#include "strobe/testing/pprof_reader.h"

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

// A thread that serves 100 fast requests and 3 slow ones.
struct Server {
  std::string name;
  std::int64_t first_request = 0;
  std::vector<Speed> speeds{};
  Span cpu_ns{};

  template <class Begin>
  void Run(BasicProfiler<CollectingTraits>& profiler, const Begin& begin) {
    const std::int64_t begin_ns = ThreadCpuNs();
    {
      const Registration registration = profiler.RegisterThread(name);
      const std::int64_t registered_ns = ThreadCpuNs();
      for (std::int64_t i = 0; i < 103; ++i) {
        const bool is_slow = i % 40 == 20;
        speeds.push_back(
            Serve(first_request + i, is_slow ? kSlowOverNs + 50 * kMs : 5 * kMs, begin));
      }
      cpu_ns.least = ThreadCpuNs() - registered_ns;
    }
    cpu_ns.most = ThreadCpuNs() - begin_ns;
  }
};

bool IsSlow(const LabelSet& set) { return set.Text(kSlowLabel) == "true"; }

// Checks the rows of the requests, and returns the number of samples of slow ones.
std::int64_t CheckRequests(const Exports& exports, const std::vector<Speed>& speeds) {
  std::int64_t slow = 0;
  for (const auto& [profile, bytes] : exports) {
    const auto samples = static_cast<std::size_t>(ColumnOf(profile, "samples"));
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const auto request = static_cast<std::size_t>(profile.Labels(i).Number("request"));
      if (request == 0 || speeds[request] == Speed::kUnknown) continue;
      const bool is_slow = speeds[request] == Speed::kSlow;
      EXPECT_EQ(IsSlow(profile.Labels(i)), is_slow) << "request " << request;
      slow += is_slow ? profile.Values(i)[samples] : 0;
    }
  }
  return slow;
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

TEST(SlowSpans, OnlyTheirSamplesAreUnderSlowAndAllAddUp) {
  CollectingExporter::Take();
  std::array<Server, 2> servers{Server{.name = "zones", .first_request = 1},
                                Server{.name = "traces", .first_request = 104}};
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  std::thread zones([&] {
    servers[0].Run(profiler, [] { return ScopedZone("request", {.slow_over_ns = kSlowOverNs}); });
  });
  std::thread traces([&] {
    servers[1].Run(profiler,
                   [] { return ScopedTrace(1, 2, 3, SpanOptions{.slow_over_ns = kSlowOverNs}); });
  });
  zones.join();
  traces.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().spans_overflowed, 0U);
  const Exports exports = CollectingExporter::Take();
  std::vector<Speed> speeds{Speed::kUnknown};
  for (const Server& server : servers) {
    speeds.insert(speeds.end(), server.speeds.begin(), server.speeds.end());
    const std::int64_t cpu_ns = SumOfThread(exports, "cpu", server.name);
    EXPECT_GE(cpu_ns, server.cpu_ns.least) << server.name;
    EXPECT_LE(cpu_ns, server.cpu_ns.most) << server.name;
  }
  EXPECT_GT(CheckRequests(exports, speeds), 0);
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

// Works under the label `phase` until it has been sampled, and until the clock says `until_ns`.
void Work(std::string_view phase, std::int64_t until_ns) {
  const ScopedLabels labels({{"phase", phase}});
  const EnoughWalks is_sampled(3);
  while (!is_sampled || MonotonicNs() <= until_ns) BurnCpu(kMs);
}

TEST(SlowSpans, APeriodThatEndsInOneJudgesByTheTimeSoFar) {
  CollectingExporter::Take();
  BasicProfiler<CountedTraits<>> profiler({.sampling = {.cpu_frequency_hz = 250}});
  ASSERT_TRUE(profiler.Start().ok());
  const Registration registration = profiler.RegisterThread("main");
  const std::int64_t begin_ns = MonotonicNs();
  constexpr std::int64_t kOverNs = 1000 * kMs;
  {
    const ScopedZone zone("request", {.slow_over_ns = kOverNs});
    const std::int64_t begun_ns = MonotonicNs();
    Work("first", 0);
    ASSERT_TRUE(profiler.Flush().ok());
    const bool was_quick = MonotonicNs() - begin_ns <= kOverNs;
    const std::string first = SlownessOf(CollectingExporter::Take(), "first");
    if (was_quick) {
      EXPECT_EQ(first, "not slow");
    }
    Work("second", begun_ns + kOverNs);
    ASSERT_TRUE(profiler.Flush().ok());
    EXPECT_EQ(SlownessOf(CollectingExporter::Take(), "second"), "slow");
    Work("third", 0);
  }
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(SlownessOf(CollectingExporter::Take(), "third"), "slow");
}

}  // namespace
}  // namespace strobe::testing
