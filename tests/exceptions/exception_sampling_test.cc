#include "strobe/exceptions/exception_sampling.h"

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "integration/kept_profiles.h"
#include "strobe/testing/profile_check.h"

namespace strobe {
namespace {

using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;

struct KeepingExceptionTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, ExceptionProvider>;
};
using ExceptionProfiler = BasicProfiler<KeepingExceptionTraits>;

struct Refused {
  int reason = 0;
};

[[gnu::noinline]] void Read(int number) {
  if (number % 3 == 0) throw std::runtime_error("no data");
  throw Refused{number};
}
[[gnu::noinline]] void Write(int number) {
  asm volatile("" : : "r"(number) : "memory");
  throw Refused{number};
}
const std::map<std::string, Address> kFunctions{{"Read", reinterpret_cast<Address>(&Read)},
                                                {"Write", reinterpret_cast<Address>(&Write)}};

// Calls each function that often. Returns how many exceptions arrived.
int ThrowAndCatch(int rounds) {
  int caught = 0;
  for (int i = 0; i < rounds; ++i) {
    for (void (*function)(int) : {&Read, &Write}) {
      try {
        function(i);
      } catch (const std::runtime_error&) {
        ++caught;
      } catch (const Refused& refused) {
        caught += refused.reason == i;
      }
    }
  }
  return caught;
}

// The function whose code begins at most 1024 bytes below the address; "" is another.
std::string FunctionAt(Address address) {
  std::pair<Address, std::string> nearest{1024, ""};
  for (const auto& [name, start] : kFunctions) {
    if (address - start < nearest.first) nearest = {address - start, name};
  }
  return nearest.second;
}

// How many exceptions there were of each type from each function at the stack's leaf.
using Counts = std::map<std::pair<std::string, std::string>, std::int64_t>;
Counts CountsOf(const std::vector<KeptProfile>& kept) {
  Counts counts;
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, "exceptions"));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::int64_t value = one.profile.Values(i)[column];
      if (value == 0) continue;
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      const std::string function = frames.empty() ? "" : FunctionAt(frames.front().address);
      counts[{one.profile.Labels(i).Text(kExceptionLabel), function}] += value;
    }
  }
  return counts;
}

// Has a thread throw, with or without a registration, and checks what the profiles say.
void ExpectEachTypeOfEachFunction(bool is_registered) {
  KeptProfiles::Take();
  ExceptionProfiler profiler({.sampling = {.cpu_frequency_hz = 0},
                              .threads = {.ring_bytes = 1 << 20},
                              .exporter = {.period_s = 600}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const ExceptionSampling sampling(profiler);
  ASSERT_EQ(sampling.status(), absl::OkStatus());
  constexpr int kRounds = 300;
  const auto run = [&](int rounds) {
    std::thread([&] {
      const auto body = [&] { EXPECT_EQ(ThrowAndCatch(rounds), 2 * rounds); };
      is_registered ? static_cast<void>(RunRegistered(profiler, "t", body)) : body();
    }).join();
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  };
  // Has the unwind tables built. Before, each sample takes a copy of the stack along, and a sample
  // that finds no room for it is lost.
  run(3);
  run(3);
  KeptProfiles::Take();
  run(kRounds);
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  const std::string refused = "strobe::(anonymous namespace)::Refused";
  EXPECT_EQ(CountsOf(KeptProfiles::Take()), (Counts{{{"std::runtime_error", "Read"}, kRounds / 3},
                                                    {{refused, "Read"}, kRounds - kRounds / 3},
                                                    {{refused, "Write"}, kRounds}}));
  EXPECT_EQ(ExceptionSampling::stats().untaken_exceptions, 0);
  EXPECT_EQ(ExceptionSampling::stats().exceptions_over_limit, 0);
}

TEST(ExceptionSampling, CountsEachTypeOfEachFunctionExactly) { ExpectEachTypeOfEachFunction(true); }
TEST(ExceptionSampling, CountsTheThrowsOfThreadsThatAreNotRegistered) {
  ExpectEachTypeOfEachFunction(false);
}

// No table is built yet: each takes its stack along.
TEST(ExceptionSampling, TheFirstThrowsHaveTheirStacks) {
  for (const bool is_registered : {true, false}) {
    KeptProfiles::Take();
    ExceptionProfiler profiler(
        {.sampling = {.cpu_frequency_hz = 0}, .exporter = {.period_s = 600}});
    ASSERT_EQ(profiler.Start(), absl::OkStatus());
    const ExceptionSampling sampling(profiler);
    std::thread([&] {
      const auto body = [] { EXPECT_EQ(ThrowAndCatch(6), 12); };
      is_registered ? static_cast<void>(RunRegistered(profiler, "t", body)) : body();
    }).join();
    ASSERT_EQ(profiler.Stop(), absl::OkStatus());
    const std::string refused = "strobe::(anonymous namespace)::Refused";
    EXPECT_EQ(CountsOf(KeptProfiles::Take()), (Counts{{{"std::runtime_error", "Read"}, 2},
                                                      {{refused, "Read"}, 4},
                                                      {{refused, "Write"}, 6}}))
        << is_registered;
  }
}

TEST(ExceptionSampling, CountsTheThrowsWhileNoSessionRuns) {
  KeptProfiles::Take();
  ExceptionProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  {
    const ExceptionSampling sampling(profiler);
    EXPECT_EQ(ThrowAndCatch(50), 100);
    EXPECT_EQ(ExceptionSampling::stats().untaken_exceptions, 100);
  }
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  EXPECT_EQ(ThrowAndCatch(1), 2) << "without a sampling";
  EXPECT_EQ(ExceptionSampling::stats().untaken_exceptions, 100);
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  EXPECT_EQ(CountsOf(KeptProfiles::Take()), Counts());
}

TEST(ExceptionSampling, IsOneAtATime) {
  ExceptionProfiler profiler;
  const ExceptionSampling sampling(profiler);
  EXPECT_EQ(sampling.status(), absl::OkStatus());
  {
    const ExceptionSampling other(profiler);
    EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  const ExceptionSampling third(profiler);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kFailedPrecondition)
      << "the end of one that does nothing ends nothing";
}

}  // namespace
}  // namespace strobe
