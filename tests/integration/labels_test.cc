// Labels in whole programs: each thread's CPU time is divided by what the thread said that it was
// doing, and adds up.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "collecting_exporter.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"
#include "strobe/testing/profile_check.h"

namespace strobe::testing {
namespace {

constexpr std::int64_t kMs = 1'000'000;

using Exports = std::vector<CollectingExporter::Exported>;

struct Share {
  std::int64_t cpu_ns = 0;
  std::int64_t samples = 0;
};

// By the thread's name, the labels "endpoint" and "step", and the zones.
std::map<std::string, Share> Shares(const Exports& exports) {
  std::map<std::string, Share> shares;
  for (const auto& [profile, bytes] : exports) {
    const auto cpu = static_cast<std::size_t>(ColumnOf(profile, "cpu"));
    const auto samples = static_cast<std::size_t>(ColumnOf(profile, "samples"));
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const LabelSet& set = profile.Labels(i);
      Share& share = shares[absl::StrCat(set.Text(kThreadNameLabel), set.Text("endpoint"),
                                         set.Text("step"), set.Text(kZoneLabel))];
      share.cpu_ns += profile.Values(i)[cpu];
      share.samples += profile.Values(i)[samples];
    }
  }
  return shares;
}

// A thread that works under one set of labels after another, and what each used.
struct Worker {
  std::string name;
  std::map<std::string, std::int64_t> used_ns;
  std::int64_t total_ns = 0;

  // Its time in the profile adds up to its clock, and is divided as it was used.
  void ExpectShares(const std::map<std::string, Share>& shares, std::int64_t bracket_ns) const {
    Share all;
    for (const auto& [key, share] : shares) {
      if (!key.starts_with(name)) continue;
      all.cpu_ns += share.cpu_ns;
      all.samples += share.samples;
    }
    EXPECT_GE(all.cpu_ns, total_ns) << name;
    EXPECT_LE(all.cpu_ns, bracket_ns) << name;
    ASSERT_GT(all.samples, 20);
    for (const auto& [key, ns] : used_ns) {
      const double p = static_cast<double>(ns) / static_cast<double>(total_ns);
      // Samples are compared, not their times: on a busy machine, one sample may speak for a long
      // time.
      const double error = 5 * std::sqrt(p * (1 - p) / static_cast<double>(all.samples));
      const auto found = shares.find(key);
      const double measured = found == shares.end() ? 0
                                                    : static_cast<double>(found->second.samples) /
                                                          static_cast<double>(all.samples);
      EXPECT_NEAR(measured, p, error) << key << " of " << all.samples << " samples";
    }
  }
  void Burn(const std::string& key, std::int64_t ns) {
    const std::int64_t begin_ns = ThreadCpuNs();
    BurnCpu(ns);
    used_ns[name + key] += ThreadCpuNs() - begin_ns;
  }
  void Run(Labels handed_over) {
    const std::int64_t begin_ns = ThreadCpuNs();
    for (int round = 0; round < 20; ++round) {
      const ScopedLabels pay({{"endpoint", "/pay"}});
      Burn("/pay", 6 * kMs);
      {
        const ScopedLabels step({{"step", "+charge"}});
        Burn("/pay+charge", 4 * kMs);
        const ScopedLabels inner({{"endpoint", "/inner"}});
        Burn("/inner+charge", 3 * kMs);
      }
      Burn("/pay", 4 * kMs);
      const ScopedLabels other(handed_over);
      Burn("/handed", 3 * kMs);
    }
    total_ns = ThreadCpuNs() - begin_ns;
  }
};

TEST(Labels, DivideEachThreadsCpuTimeAndAddUp) {
  CollectingExporter::Take();
  std::array<Worker, 3> workers;
  std::array<std::int64_t, 3> bracket_ns{};
  {
    BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 250}});
    ASSERT_TRUE(profiler.Start().ok());
    const Labels handed_over = Labels::Of({{"endpoint", "/handed"}});
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      workers[i].name = absl::StrCat("worker", i);
      threads.emplace_back([&, i] {
        const std::int64_t begin_ns = ThreadCpuNs();
        {
          const Registration registration = profiler.RegisterThread(workers[i].name);
          workers[i].Run(handed_over);
        }
        bracket_ns[i] = ThreadCpuNs() - begin_ns;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(profiler.Stop().ok());
    EXPECT_EQ(profiler.stats().labels_overflowed, 0u);
  }
  const std::map<std::string, Share> shares = Shares(CollectingExporter::Take());
  for (std::size_t i = 0; i < workers.size(); ++i) workers[i].ExpectShares(shares, bracket_ns[i]);
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

TEST(Zones, DivideAThreadsCpuTimeAndStandAtTheRootOfItsStacks) {
  CollectingExporter::Take();
  Worker worker{.name = "zoned", .used_ns = {}};
  std::int64_t bracket_ns = 0;
  BasicProfiler<CollectingTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 250}, .collector = {.zone_frames = true}});
  ASSERT_TRUE(profiler.Start().ok());
  std::thread([&] {
    const std::int64_t begin_ns = ThreadCpuNs();
    {
      const Registration registration = profiler.RegisterThread(worker.name);
      const std::int64_t registered_ns = ThreadCpuNs();
      for (int round = 0; round < 20; ++round) {
        const ScopedZone request("request");
        worker.Burn("request", 6 * kMs);
        {
          const ScopedZone parse("parse");
          worker.Burn("request;parse", 8 * kMs);
        }
        const ScopedLabels pay({{"endpoint", "/pay"}});
        worker.Burn("/payrequest", 6 * kMs);
      }
      worker.total_ns = ThreadCpuNs() - registered_ns;
    }
    bracket_ns = ThreadCpuNs() - begin_ns;
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  const Exports exports = CollectingExporter::Take();
  worker.ExpectShares(Shares(exports), bracket_ns);
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
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&profiler] {
      const Registration registration = profiler.RegisterThread("writer");
      const std::int64_t end_ns = ThreadCpuNs() + 200 * kMs;
      for (std::int64_t i = 0; ThreadCpuNs() < end_ns; ++i) {
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
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  std::int64_t labelled = 0;
  for (const auto& [profile, bytes] : CollectingExporter::Take()) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const LabelSet& set = profile.Labels(i);
      if (set.Number("b") == 0) continue;
      EXPECT_EQ(set.Number("b"), set.Number("a") + 1000);
      ++labelled;
    }
  }
  EXPECT_GT(labelled, 0);
}

// A request's span is in its samples, also while spans change as fast as they can.
TEST(Traces, AreInTheSamplesAndNeverMixed) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  std::int64_t traced_ns = 0;
  std::thread([&] {
    const Registration registration = profiler.RegisterThread("traced");
    const std::int64_t begin_ns = ThreadCpuNs();
    for (std::uint64_t i = 1; ThreadCpuNs() < begin_ns + 200 * kMs;) {
      for (int k = 0; k < 1000; ++k, ++i) const ScopedTrace trace(i, 2 * i, 3 * i);
    }
    const ScopedTrace last(7, 14, 21);
    BurnCpu(200 * kMs);
    traced_ns = ThreadCpuNs() - begin_ns;
  }).join();
  ASSERT_TRUE(profiler.Stop().ok());
  std::int64_t sum_ns = 0;
  std::int64_t last_ns = 0;
  for (const auto& [profile, bytes] : CollectingExporter::Take()) {
    const auto cpu = static_cast<std::size_t>(ColumnOf(profile, "cpu"));
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const LabelSet& set = profile.Labels(i);
      const std::int64_t trace_id = set.Number(kTraceIdLabel);
      EXPECT_EQ(set.Number(kSpanIdLabel), 2 * trace_id);
      EXPECT_EQ(set.Number(kLocalRootSpanIdLabel), 3 * trace_id);
      sum_ns += profile.Values(i)[cpu];
      if (trace_id == 7) last_ns += profile.Values(i)[cpu];
    }
  }
  EXPECT_GE(sum_ns, traced_ns);
  EXPECT_NEAR(static_cast<double>(last_ns) / static_cast<double>(sum_ns), 0.5, 0.25);
}

// A thread that registers in the middle of a scope begins with the labels of the scope.
TEST(Labels, HoldForARegistrationThatBeginsLater) {
  CollectingExporter::Take();
  BasicProfiler<CollectingTraits> profiler;
  ASSERT_TRUE(profiler.Start().ok());
  {
    const ScopedLabels labels({{"endpoint", "/early"}});
    const Registration registration = profiler.RegisterThread("main");
    BurnCpu(1000 * kMs);  // many samples: what is never sampled has no labels
  }
  ASSERT_TRUE(profiler.Stop().ok());
  const auto shares = Shares(CollectingExporter::Take());
  ASSERT_TRUE(shares.contains("main/early"));
  EXPECT_GE(shares.at("main/early").cpu_ns, 90 * kMs);
  const auto unlabelled = shares.find("main");
  EXPECT_EQ(unlabelled == shares.end() ? 0 : unlabelled->second.samples, 0);
}

}  // namespace
}  // namespace strobe::testing
