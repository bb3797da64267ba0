// How far a share in a profile may be from the truth, because it is estimated from samples. Totals
// are not: a thread's total is its clock's.
#pragma once

#include <cmath>
#include <limits>

namespace strobe {

// The number of samples of equal weight that would give the same error as those of several threads
// (Kish's effective sample size). A thread that is sampled less often has samples of more weight.
class EffectiveSamples {
 public:
  // A thread's amount, and the samples that divide it. A thread without samples adds no error.
  void AddThread(double amount, double samples) {
    amount_ += amount;
    if (samples > 0) squares_ += amount * amount / samples;
  }
  // 0 if there are none.
  [[nodiscard]] double count() const { return squares_ > 0 ? amount_ * amount_ / squares_ : 0; }

 private:
  double amount_ = 0;
  double squares_ = 0;
};

// The standard error of a share, from 0 to 1, that `samples` samples of equal weight give; NaN
// without samples. One sample inside and one outside are added, so that what was never sampled, or
// always, has an error too (Agresti and Coull 1998).
inline double StandardErrorOfShare(double share, double samples) {
  if (!(samples > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double adjusted = (share * samples + 1) / (samples + 2);
  return std::sqrt(adjusted * (1 - adjusted) / (samples + 2));
}

}  // namespace strobe
