// AllocationSampler: chooses the allocations of one thread that are sampled, and what each stands
// for.
//
// Sampled points lie on the axis of allocated bytes, as the points of a Poisson process: the
// distances are exponentially distributed with the mean `interval_bytes`. An allocation that a
// point lies in is sampled. That happens to an allocation of s bytes with the probability
// p = 1 - exp(-s / interval_bytes), so a sample that counts for 1 / p allocations, of s / p bytes,
// makes the sums right in the mean, for every mixture of sizes.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/sample_provider.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What a sampled allocation stands for.
struct AllocationAmounts {
  std::int64_t objects = 0;  // 0 if the allocation is not sampled
  std::int64_t bytes = 0;
};

// The greatest mean distance of sampled points, so that sums of distances do not overflow.
inline constexpr std::int64_t kMaxAllocationIntervalBytes = std::int64_t{1} << 40;

// Belongs to one thread. Signal-safe: a signal's handler that allocates during a call may cost or
// repeat a sample, and does no other harm. Constant-initialized, so that it can be thread-local
// without a guard. `Random` is a RandomSource.
template <class Random = RandomSource>
class BasicAllocationSampler {
 public:
  constexpr BasicAllocationSampler() = default;

  // Counts an allocation. True if Take has to be called for it; always for the thread's first.
  STROBE_ALWAYS_INLINE bool Count(std::size_t size) noexcept {
    countdown_bytes_ =
        static_cast<std::int64_t>(static_cast<std::uint64_t>(countdown_bytes_) - size);
    return countdown_bytes_ <= 0;
  }

  // Returns what the allocation stands for that Count has just returned true for, and draws the
  // distance to the next point. `seed` begins the thread's random numbers, in the first call.
  AllocationAmounts Take(std::size_t size, std::int64_t interval_bytes,
                         std::uint64_t seed) noexcept {
    if (interval_bytes_ == 0) {
      random_ = Random(seed);
      Draw(interval_bytes);
      if (!Count(size)) return {};
    }
    const AllocationAmounts amounts = AmountsOf(size);
    Draw(interval_bytes);
    return amounts;
  }

 private:
  static constexpr double kMaxBytes = 0x1.0p60;  // no program has that much

  // The distance is rounded up: then it reaches an allocation of s bytes exactly if the distance
  // itself is at most s.
  void Draw(std::int64_t interval_bytes) noexcept {
    interval_bytes_ = std::clamp<std::int64_t>(interval_bytes, 1, kMaxAllocationIntervalBytes);
    countdown_bytes_ =
        1 + static_cast<std::int64_t>(random_.Exponential(static_cast<double>(interval_bytes_)));
  }

  // Goes by the interval that the distance to this allocation was drawn with. The number of objects
  // is rounded at random, up with the probability of the fraction, so that its mean stays 1 / p.
  AllocationAmounts AmountsOf(std::size_t size) noexcept {
    if (size == 0) return {};  // no point lies in no bytes
    const double bytes = std::min(static_cast<double>(size), kMaxBytes);
    const double objects = -1 / std::expm1(-bytes / static_cast<double>(interval_bytes_));
    return {.objects = static_cast<std::int64_t>(objects + random_.Uniform()),
            .bytes = std::llround(bytes * objects)};
  }

  std::int64_t countdown_bytes_ = 0;
  std::int64_t interval_bytes_ = 0;  // that the countdown was drawn with; 0 before the first
  Random random_{0};
};
using AllocationSampler = BasicAllocationSampler<>;

}  // namespace strobe::internal
STROBE_HIDDEN_END
