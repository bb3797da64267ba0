// CountScale: the counts of a sample profile, as whole numbers.
#pragma once

#include <cstdint>

#include "function_samples.h"

namespace strobe::internal {

// A larger count than this divides all counts. Clang keeps 32 bits of a count.
inline constexpr double kMaxCount = 0x7FFFFFFF;

// The count of a sample. Compilers take what has no samples for executed about once: counts that
// are numbers of samples let them see how little a missing one says. A sample counts more than 1,
// so that the part of one that a line has is told from none.
inline constexpr double kCountOfSample = 10;

class CountScale {
 public:
  // `sample_amount`, the mean of a sample, counts kCountOfSample.
  CountScale(const FunctionSamplesMap& functions, double sample_amount);

  // Rounded, and at least 1 if it is not 0.
  [[nodiscard]] std::uint64_t Of(double count) const;

 private:
  double scale_;
};

}  // namespace strobe::internal
