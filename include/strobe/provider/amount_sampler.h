// AmountSampler: chooses the events that are sampled by what they amount to (bytes, nanoseconds, a
// count), and what each sample stands for.
//
// Sampled points lie on the axis of amounts, as the points of a Poisson process: the distances are
// exponentially distributed with the mean `interval`. An event that a point lies in is sampled.
// That happens to an event of the amount a with the probability p = 1 - exp(-a / interval), so a
// sample that counts for 1 / p events, of the amount a / p, makes the sums right in the mean, for
// every mixture of amounts. An estimate of n samples has a relative standard error of 1 / sqrt(n).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/system_clock.h"
#include "strobe/provider/sample_provider.h"

namespace strobe {

// What a sample stands for: so many events, whose amounts add up to `total`.
struct SampledAmounts {
  std::int64_t count = 0;  // 0 if the event is not sampled
  std::int64_t total = 0;

  friend bool operator==(const SampledAmounts&, const SampledAmounts&) = default;
};

namespace STROBE_HIDDEN internal {

// A sum of SampledAmounts, to which threads add. Signal-safe. Constant-initialized.
class AmountsSum {
 public:
  void Add(const SampledAmounts& amounts) noexcept {
    count_.fetch_add(amounts.count, std::memory_order_relaxed);
    total_.fetch_add(amounts.total, std::memory_order_relaxed);
  }
  void Clear() noexcept {
    count_.store(0, std::memory_order_relaxed);
    total_.store(0, std::memory_order_relaxed);
  }
  [[nodiscard]] SampledAmounts Get() const noexcept {
    return {.count = count_.load(std::memory_order_relaxed),
            .total = total_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<std::int64_t> count_{0};
  std::atomic<std::int64_t> total_{0};
};

// The greatest mean distance of sampled points, so that sums of distances do not overflow.
inline constexpr std::int64_t kMaxSamplingInterval = std::int64_t{1} << 40;

// A seed that differs between threads, and between calls. Signal-safe.
inline std::uint64_t NewSeed() noexcept {
  static constinit std::atomic<std::uint64_t> count{0};
  const auto now_ns = static_cast<std::uint64_t>(SystemClock().MonotonicNs());
  return now_ns ^ count.fetch_add(1, std::memory_order_relaxed) << 48;
}

// What an event of `amount` stands for that was sampled with this interval, from 1 to
// kMaxSamplingInterval. The count is rounded at random, up with the probability of the fraction, so
// that its mean stays 1 / p.
template <class Random>
SampledAmounts AmountsOfSample(std::uint64_t amount, std::int64_t interval,
                               Random& random) noexcept {
  constexpr double kMaxAmount = 0x1.0p60;  // no program has that much
  if (amount == 0) return {};              // no point lies in nothing
  const double bounded = std::min(static_cast<double>(amount), kMaxAmount);
  const double count = -1 / std::expm1(-bounded / static_cast<double>(interval));
  return {.count = static_cast<std::int64_t>(count + random.Uniform()),
          .total = std::llround(bounded * count)};
}

// Samples one event by itself: for events that are rare, or cost much anyway. Signal-safe.
template <class Random>
SampledAmounts SampleOne(std::uint64_t amount, std::int64_t interval, Random& random) noexcept {
  const std::int64_t bounded = std::clamp<std::int64_t>(interval, 1, kMaxSamplingInterval);
  if (random.Exponential(static_cast<double>(bounded)) >= static_cast<double>(amount)) return {};
  return AmountsOfSample(amount, bounded, random);
}

// Samples the events of one thread, at the cost of a subtraction for those that are not sampled.
// Signal-safe: a signal's handler that brings an event during a call may cost or repeat a sample,
// and does no other harm. Constant-initialized, so that it can be thread-local without a guard.
// `Random` is a RandomSource.
template <class Random = RandomSource>
class BasicAmountSampler {
 public:
  constexpr BasicAmountSampler() = default;

  // A sampler whose next point is `distance` away.
  static BasicAmountSampler At(std::int64_t distance) noexcept {
    BasicAmountSampler sampler;
    sampler.countdown_ = distance;
    return sampler;
  }

  // Counts an event. True if Take has to be called for it; always for the thread's first.
  STROBE_ALWAYS_INLINE bool Count(std::uint64_t amount) noexcept {
    countdown_ = static_cast<std::int64_t>(static_cast<std::uint64_t>(countdown_) - amount);
    return countdown_ <= 0;
  }

  // Returns what the event stands for that Count has just returned true for, and draws the distance
  // to the next point. `seed` begins the thread's random numbers, in the first call. Another
  // interval is in force from the next point on.
  SampledAmounts Take(std::uint64_t amount, std::int64_t interval, std::uint64_t seed) noexcept {
    if (interval_ == 0) {
      random_ = Random(seed);
      Draw(interval);
      if (!Count(amount)) return {};
    }
    const SampledAmounts amounts = AmountsOfSample(amount, interval_, random_);
    Draw(interval);
    return amounts;
  }

  // How much the next point is away. Each Count of an amount changes it.
  [[nodiscard]] std::int64_t distance() const noexcept { return countdown_; }

 private:
  // The distance is rounded up: then it reaches an event of the amount a exactly if the distance
  // itself is at most a.
  void Draw(std::int64_t interval) noexcept {
    interval_ = std::clamp<std::int64_t>(interval, 1, kMaxSamplingInterval);
    countdown_ = 1 + static_cast<std::int64_t>(random_.Exponential(static_cast<double>(interval_)));
  }

  std::int64_t countdown_ = 0;
  std::int64_t interval_ = 0;  // that the countdown was drawn with; 0 before the first
  Random random_{0};
};
using AmountSampler = BasicAmountSampler<>;

}  // namespace internal

}  // namespace strobe
