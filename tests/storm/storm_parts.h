// What the storm measures with: a provider that asks for a stack of every thread that runs, as fast
// as the collector can go round; one that is served by a timer far beyond the kernel's tick; and an
// encoder that adds the profiles up.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "forked_child.h"
#include "strobe/own_parts.h"
#include "strobe/testing/profile_check.h"

// The bounds of Spin's code: see storm_weather.cc.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's names
extern "C" const char __start_storm_spin[], __stop_storm_spin[];

namespace strobe::testing {

// Asks a thread for its stack whenever its CPU clock has moved. What it has asked for and what the
// profile says must be equal, request by request.
class RequestProvider {
 public:
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"requests", "count"}};
  struct ThreadState {
    std::int64_t asked = 0;
    std::int64_t cpu_ns = -1;
  };

  explicit RequestProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
  [[nodiscard]] std::int64_t period_ns() const { return 1; }
  void Attach(SampleTarget& /*thread*/, ThreadState& state, RandomSource& /*random*/,
              std::int64_t /*now_ns*/) {
    state = ThreadState();
  }
  std::int64_t Detach(SampleTarget& thread, ThreadState& state, std::int64_t /*now_ns*/) {
    total_asked.fetch_add(state.asked);
    return state.asked - thread.credited_weight();
  }
  [[nodiscard]] std::int64_t poll_period_ns() const { return 1; }
  std::int64_t Poll(SampleTarget& thread, ThreadState& state, std::int64_t /*now_ns*/) {
    const std::int64_t cpu_ns = thread.CpuTimeNs();
    if (cpu_ns == std::exchange(state.cpu_ns, cpu_ns)) return 0;
    ++state.asked;
    return 1;
  }

  // By threads that have been detached.
  static inline std::atomic<std::int64_t> total_asked{0};
};
static_assert(SampleProvider<RequestProvider>);

// Counts the expiries of the thread's Pesterer. What was credited in the handler and what the
// profile says must be equal.
class ExpiryProvider {
 public:
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"expiries", "count"}};
  struct ThreadState {};

  explicit ExpiryProvider(const SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
  [[nodiscard]] std::int64_t period_ns() const { return 1; }
  void Attach(SampleTarget& /*thread*/, ThreadState& /*state*/, RandomSource& /*random*/,
              std::int64_t /*now_ns*/) {}
  std::int64_t Detach(SampleTarget& thread, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    total_credited.fetch_add(thread.credited_weight());
    return 0;
  }
  [[nodiscard]] std::int64_t poll_period_ns() const { return 0; }
  std::int64_t Poll(SampleTarget& /*thread*/, ThreadState& /*state*/, std::int64_t /*now_ns*/) {
    return 0;
  }

  // By threads that have been detached.
  static inline std::atomic<std::int64_t> total_credited{0};
};
static_assert(SampleProvider<ExpiryProvider>);

// Sums of all profiles so far. Thread-safe, also over forks.
class Totals {
 public:
  struct Sums {
    std::int64_t cpu_ns = 0;
    std::int64_t wall_ns = 0;
    std::int64_t requests = 0;
    std::int64_t expiries = 0;
    // Samples in Spin, and those of them whose stack does not lead to the thread's or the
    // coroutine's first function.
    std::int64_t in_spin = 0;
    std::int64_t cut = 0;
  };

  static void Add(const Profile& profile) {
    const std::string wrong = CheckProfile(profile);
    const std::lock_guard lock(Mutex());
    if (!wrong.empty()) Wrong() = wrong;
    const std::array columns{ColumnOf(profile, "cpu"), ColumnOf(profile, "wall"),
                             ColumnOf(profile, "requests"), ColumnOf(profile, "expiries")};
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      Sums& sums = ByName()[profile.Labels(i).Text(kThreadNameLabel)];
      const auto values = profile.Values(i);
      const std::array places{&sums.cpu_ns, &sums.wall_ns, &sums.requests, &sums.expiries};
      for (std::size_t j = 0; j < columns.size(); ++j) {
        if (columns[j] >= 0) *places[j] += values[static_cast<std::size_t>(columns[j])];
      }
      if (!IsInSpin(profile, profile.samples[i])) continue;
      ++sums.in_spin;
      if (IsCut(profile, profile.samples[i])) ++sums.cut;
    }
  }
  // Since the last Take.
  static std::map<std::string, Sums> Take() {
    const std::lock_guard lock(Mutex());
    return std::exchange(ByName(), {});
  }
  // Whether a thread of that name has been sampled in Spin since then.
  static bool HasSpun(const std::string& name) {
    const std::lock_guard lock(Mutex());
    const auto found = ByName().find(name);
    return found != ByName().end() && found->second.in_spin > 0;
  }
  // The last profile that was not well-formed, in words.
  static std::string WhatIsWrong() {
    const std::lock_guard lock(Mutex());
    return Wrong();
  }
  // A fork's child must not find the sums locked by a thread that it has not got.
  static void HoldOverForks() {
    pthread_atfork([] { Mutex().lock(); }, [] { Mutex().unlock(); }, [] { Mutex().unlock(); });
  }

 private:
  static bool IsInSpin(const Profile& profile, const ProfileSample& sample) {
    const Frame& leaf = profile.frames[profile.stacks[sample.stack].frame];
    return sample.stack != 0 && !leaf.is_pseudo() &&
           leaf.address >= reinterpret_cast<Address>(__start_storm_spin) &&
           leaf.address < reinterpret_cast<Address>(__stop_storm_spin);
  }
  static bool IsCut(const Profile& profile, const ProfileSample& sample) {
    const std::vector<Frame> frames = FramesOf(profile, sample);
    if (frames.empty() || !frames.back().is_pseudo()) return false;
    const auto root = static_cast<PseudoFrame>(frames.back().address);
    return root == PseudoFrame::kTruncated || root == PseudoFrame::kBroken ||
           root == PseudoFrame::kNoUnwindInfo;
  }
  static std::mutex& Mutex() {
    static auto* const mutex = new std::mutex;
    return *mutex;
  }
  static std::map<std::string, Sums>& ByName() {
    static auto* const sums = new std::map<std::string, Sums>;
    return *sums;
  }
  static std::string& Wrong() {
    static auto* const wrong = new std::string;
    return *wrong;
  }
};

class AddingEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".sums";
  static constexpr std::string_view kContentType = "application/octet-stream";
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& /*symbols*/) {
    Totals::Add(profile);
    return std::string();
  }
};
static_assert(Encoder<AddingEncoder>);

struct StormTraits : DefaultTraits {
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
  using Providers =
      ProviderList<CpuTimeProvider, WallTimeProvider, RequestProvider, ExpiryProvider>;
  static constexpr std::uint8_t kExpiryProvider = 3;  // its place in the list
  using Symbolizer = NullSymbolizer;
  using Outputs = OutputList<Output<AddingEncoder, NullExporter>>;
};
using StormProfiler = BasicProfiler<StormTraits>;

}  // namespace strobe::testing
