// What functions cost, in one column of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "function_lines.h"
#include "loaded_profile.h"

namespace strobe::internal {

struct FunctionCost {
  std::int64_t self = 0;   // in the function itself
  std::int64_t total = 0;  // in it and in what it called; a recursive function counts once
};

// Of each of `lines.functions()`.
std::vector<FunctionCost> FunctionCosts(const Profile& profile, const FunctionLines& lines,
                                        std::size_t column);

// The sum of a column.
std::int64_t ColumnSum(const Profile& profile, std::size_t column);

// How many samples of equal weight divide the column; 0 if the profile does not count its samples.
// See core/share_error.h.
double SamplesBehind(const Profile& profile, std::size_t column);

// part / whole; 0 if the whole is 0.
double ShareOf(std::int64_t part, std::int64_t whole);

// A change of a share between two profiles. See src/encode/html/page/statistics.js, which shows the
// same.
struct ShareChange {
  double change = 0;
  double error = 0;             // its standard error; NaN if samples are not counted
  bool is_significant = false;  // larger than kSignificantErrors of its errors
};
inline constexpr double kSignificantErrors = 3;
ShareChange ChangeOf(double share, double samples, double base_share, double base_samples);

}  // namespace strobe::internal
