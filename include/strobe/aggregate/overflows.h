// Overflows: how often a recording's limits kept something out.
#pragma once

#include <cstdint>

#include "strobe/core/stats.h"

namespace strobe {

// No limit loses an amount: the profile has all of them.
struct Overflows {
  std::uint64_t stacks = 0;   // see Stats::stacks_overflowed
  std::uint64_t labels = 0;   // see Stats::labels_overflowed
  std::uint64_t moments = 0;  // see Stats::moments_dropped
  std::uint64_t spans = 0;    // see Stats::spans_overflowed
  std::uint64_t threads = 0;  // see Stats::threads_unlisted

  void SetIn(Stats& stats) const {
    stats.stacks_overflowed = stacks;
    stats.labels_overflowed = labels;
    stats.moments_dropped = moments;
    stats.spans_overflowed = spans;
    stats.threads_unlisted = threads;
  }
  friend Overflows operator+(const Overflows& a, const Overflows& b) {
    return {.stacks = a.stacks + b.stacks,
            .labels = a.labels + b.labels,
            .moments = a.moments + b.moments,
            .spans = a.spans + b.spans,
            .threads = a.threads + b.threads};
  }
  friend Overflows operator-(const Overflows& a, const Overflows& b) {
    return {.stacks = a.stacks - b.stacks,
            .labels = a.labels - b.labels,
            .moments = a.moments - b.moments,
            .spans = a.spans - b.spans,
            .threads = a.threads - b.threads};
  }
  friend bool operator==(const Overflows&, const Overflows&) = default;
};

}  // namespace strobe
