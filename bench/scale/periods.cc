// The axes of what a period holds: stacks, sets of labels.
#include <array>
#include <fstream>
#include <span>
#include <utility>
#include <vector>

#include "point.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/base/split_mix.h"
#include "strobe/core/options.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

constexpr std::size_t kPeriodDepth = 30;
constexpr std::size_t kPeriodThreads = 16;
constexpr std::size_t kCodeAddresses = 50'000;
constexpr Address kCode = 0x555500000000, kCodeStep = 37;
constexpr std::size_t kAmpleLimitBytes = std::size_t{1} << 40;
// What the aggregator keeps in any case, beyond its limit: see Aggregator.
constexpr std::size_t kAlwaysKeptBytes = std::size_t{64} << 10;
constexpr std::array<std::int64_t, 2> kRowValues{1, 10'000'000};

ModuleMap CodeModules() {
  Module module;
  module.start = module.load_bias = kCode;
  module.limit = kCode + kCodeAddresses * kCodeStep;
  module.path = "/opt/sample/bin/sample_program";
  module.kind = ModuleKind::kProgram;
  return ModuleMap({module});
}

// The stacks of threads in turns. A stack shares 20 to 29 root frames with its thread's last one,
// and no two are equal: a leaf's address counts the stacks, and comes again only below other
// frames.
class DistinctStacks {
 public:
  // Adds `count` stacks, each with kRowValues.
  void AddTo(Aggregator& aggregator, std::size_t count) {
    std::array<std::uint32_t, kPeriodThreads> keys{};
    for (std::size_t i = 0; i < kPeriodThreads; ++i)
      keys[i] = aggregator.AddThread(i + 1, "worker");
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t thread = i % kPeriodThreads;
      const std::size_t shared = i < kPeriodThreads ? 0 : kPeriodDepth - 1 - Below(10);
      std::array<Address, kPeriodDepth>& stack = stacks_[thread];
      for (std::size_t level = 1; level < kPeriodDepth - shared; ++level)
        stack[level] = kCode + Below(kCodeAddresses) * kCodeStep;
      stack[0] = kCode + i % kCodeAddresses * kCodeStep;
      // What follows a stack beyond the limit shares nothing.
      const std::size_t fresh = kPeriodDepth - (is_known_[thread] ? shared : 0);
      const StackDelta delta{.generation = 1,
                             .shared = kPeriodDepth - fresh,
                             .leaf_first = std::span(stack).first(fresh)};
      is_known_[thread] = aggregator.Add(keys[thread], delta, kRowValues);
    }
  }

 private:
  std::size_t Below(std::size_t limit) { return internal::SplitMix64(state_) % limit; }

  std::uint64_t state_ = 1;
  std::array<std::array<Address, kPeriodDepth>, kPeriodThreads> stacks_{};  // leaf first
  std::array<bool, kPeriodThreads> is_known_{};
};

// Measures what follows the samples of a period: its Profile, and the profile's bytes. False if the
// first column does not add up to `samples`.
bool MeasureEnd(Aggregator& aggregator, std::size_t samples, Profile& profile) {
  profile = ProfileHead();
  MeasureCpu("CPU to make the profile",
             [&] { FillProfile(aggregator.Take(ProcessLabels()), profile); });
  std::size_t bytes = 0;
  MeasureCpu("CPU to encode", [&] {
    const auto encoded = PprofEncoder().Encode(profile, Symbols());
    if (encoded.ok()) bytes = encoded->size();
  });
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) sum += profile.Values(i)[0];
  return bytes > 0 && sum == static_cast<std::int64_t>(samples);
}

void ReportMemory(const Aggregator& aggregator, std::size_t limit_bytes) {
  const auto bytes = static_cast<double>(aggregator.memory_bytes());
  ReportPoint("memory of the period", bytes, "B");
  if (limit_bytes != kAmpleLimitBytes)
    ReportPoint("memory of its bound", bytes / static_cast<double>(limit_bytes + kAlwaysKeptBytes),
                "");
}

Outcome MeasureStacksWithin(std::size_t limit_bytes, std::size_t size) {
  const ResidentGrowth growth;
  Aggregator aggregator(kRowValues.size(), limit_bytes);
  aggregator.SetModules(1, CodeModules());
  DistinctStacks stacks;
  MeasureCpu("CPU to add up", [&] { stacks.AddTo(aggregator, size); });
  ReportMemory(aggregator, limit_bytes);
  growth.Report();
  const std::uint64_t overflowed = aggregator.overflows().stacks;
  ReportPoint("overflowed", static_cast<double>(overflowed), "");
  Profile profile;
  if (!MeasureEnd(aggregator, size, profile)) return Outcome::kWrong;
  const bool is_distinct = overflowed > 0 || profile.samples.size() == size;
  const bool is_within = limit_bytes != kAmpleLimitBytes || overflowed == 0;
  return is_distinct && is_within ? Outcome::kRight : Outcome::kWrong;
}

std::size_t DefaultLimitBytes() {
  return static_cast<std::size_t>(*CollectorOptions().memory_bytes);
}

}  // namespace

Outcome MeasureStacks(const Point& point) {
  return MeasureStacksWithin(kAmpleLimitBytes, point.size);
}

Outcome MeasureLimitedStacks(const Point& point) {
  return MeasureStacksWithin(DefaultLimitBytes(), point.size);
}

Outcome MeasureLabels(const Point& point) {
  constexpr std::size_t kSamplesOfSet = 10;
  std::vector<std::uint64_t> numbers(point.size);
  const auto intern = [&] {
    for (std::size_t i = 0; i < point.size; ++i)
      numbers[i] = ProcessLabels().Intern({{"request", static_cast<std::int64_t>(i)}});
  };
  MeasureCpu("CPU to name the sets", intern);
  MeasureCpu("CPU to find the sets", intern);
  Aggregator aggregator(kRowValues.size(), DefaultLimitBytes());
  aggregator.SetModules(1, CodeModules());
  const std::uint32_t key = aggregator.AddThread(1, "worker");
  std::array<Address, kPeriodDepth> stack{};
  for (std::size_t i = 0; i < kPeriodDepth; ++i) stack[i] = kCode + i * kCodeStep;
  MeasureCpu("CPU to add up", [&] {
    for (std::size_t i = 0; i < point.size * kSamplesOfSet; ++i) {
      const StackDelta delta{.generation = 1, .leaf_first = stack};
      aggregator.Add(key, delta, kRowValues, SampleContext(numbers[i % point.size]));
    }
  });
  ReportMemory(aggregator, DefaultLimitBytes());
  Profile profile;
  if (!MeasureEnd(aggregator, point.size * kSamplesOfSet, profile)) return Outcome::kWrong;
  const bool is_right = ProcessLabels().refused() == 0 && profile.samples.size() == point.size &&
                        aggregator.overflows().labels == 0;
  return is_right ? Outcome::kRight : Outcome::kWrong;
}

Outcome WriteProfile(const Point& point) {
  // Stacks of one program: different sizes share its functions.
  const SampleProfile sample = RandomProfile(point.size, kPeriodDepth, 26, 20'000, point.size);
  const auto bytes = PprofEncoder().Encode(sample.profile, sample.symbols);
  if (!bytes.ok()) return Outcome::kWrong;
  std::ofstream file(point.path, std::ios::binary);
  return (file << *bytes).flush() ? Outcome::kRight : Outcome::kWrong;
}

}  // namespace strobe::testing
