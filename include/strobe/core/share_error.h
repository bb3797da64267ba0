// How far a share in a profile may be from the truth, because it is estimated from samples. Totals
// are not: a thread's total is its clock's.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

namespace strobe {

// The standard error of a share, from 0 to 1, that `samples` samples of equal weight give; NaN
// without samples. One sample inside and one outside are added, so that what was never sampled, or
// always, has an error too (Agresti and Coull 1998).
inline double StandardErrorOfShare(double share, double samples) {
  if (!(samples > 0)) return std::numeric_limits<double>::quiet_NaN();
  const double adjusted = (share * samples + 1) / (samples + 2);
  return std::sqrt(adjusted * (1 - adjusted) / (samples + 2));
}

// What the amounts of several threads stand on: the samples that divide them, and the part that no
// sample divides.
class EffectiveSamples {
 public:
  // A thread's amount, and the samples that divide it. Without samples it is unknown.
  void AddThread(double amount, double samples) {
    if (!(samples > 0)) return AddUnknown(amount);
    taken_ += samples;
    amount_ += std::abs(amount);
    squares_ += amount * amount / samples;
  }
  // An amount of which nothing says whose it is.
  void AddUnknown(double amount) { unknown_ += std::abs(amount); }

  // How many samples were taken.
  [[nodiscard]] double taken() const { return taken_; }
  // The effective number: that of samples of equal weight that would give the same error (Kish). A
  // thread that is sampled less often has samples of more weight. 0 if there are none.
  [[nodiscard]] double count() const { return squares_ > 0 ? amount_ * amount_ / squares_ : 0; }
  // The share of the unknown part in the whole.
  [[nodiscard]] double unknown() const {
    return unknown_ > 0 ? unknown_ / (amount_ + unknown_) : 0;
  }
  // The standard error of a share of the whole; NaN without samples. The unknown part may be the
  // share's or not: its half is added, so that two errors reach the ends of what is possible.
  [[nodiscard]] double StandardErrorOf(double share) const {
    const double known = 1 - unknown();
    const double part = known > 0 ? std::clamp(share / known, 0.0, 1.0) : 0;
    return std::hypot(known * StandardErrorOfShare(part, count()), unknown() / 2);
  }

 private:
  double taken_ = 0;
  double amount_ = 0;  // that is sampled
  double squares_ = 0;
  double unknown_ = 0;
};

}  // namespace strobe
