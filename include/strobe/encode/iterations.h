// How often the work of a profile was done, as a comment of the profile. Amounts divided by it can
// be compared with those of a profile in which the same work was done more or less often.
#pragma once

#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strobe {

inline constexpr std::string_view kIterationsComment = "strobe: iterations ";

// "strobe: iterations 1234.5".
inline std::string IterationsComment(double iterations) {
  return absl::StrCat(std::string(kIterationsComment), absl::StrFormat("%.15g", iterations));
}

// The iterations of such a comment; 0 if it is another one.
inline double IterationsIn(std::string_view comment) {
  if (!comment.starts_with(kIterationsComment)) return 0;
  comment.remove_prefix(kIterationsComment.size());
  double iterations = 0;
  const bool is_number = absl::SimpleAtod({comment.data(), comment.size()}, &iterations);
  constexpr double kMost = 1e300;  // so that sums are finite
  return is_number && iterations > 0 && iterations < kMost ? iterations : 0;
}

}  // namespace strobe
