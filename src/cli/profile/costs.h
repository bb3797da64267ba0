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
#include "strobe/base/amounts.h"
#include "strobe/core/share_error.h"

namespace strobe::internal {

struct FunctionCost {
  std::int64_t self = 0;   // in the function itself
  std::int64_t total = 0;  // in it and in what it called; a recursive function counts once
};

// Calls `visit` with the number of each function in the stack of row `row`, innermost first, and
// as often as it is there.
template <class Visit>
void VisitFunctions(const Profile& profile, const FunctionLines& lines, std::size_t row,
                    Visit visit) {
  for (std::uint32_t node = profile.samples[row].stack; node != 0;
       node = profile.stacks[node].parent) {
    for (const FunctionLines::Line& line : lines.Of(profile.stacks[node].frame))
      visit(line.function);
  }
}

// Of each of `lines.functions()`.
std::vector<FunctionCost> FunctionCosts(const Profile& profile, const FunctionLines& lines,
                                        std::size_t column);

// The numbers of functions that are not 0, those of the largest amounts first, whatever their sign.
std::vector<std::uint32_t> LargestCosts(const std::vector<FunctionCost>& costs, bool by_total);

// The sum of a column.
std::int64_t ColumnSum(const Profile& profile, std::size_t column);

// The sum of the sizes of its values: what shares are of. It is the sum where none is less than 0.
std::int64_t ColumnMagnitude(const Profile& profile, std::size_t column);

// A column whose name ends so counts the samples of another: "cycles_samples" those of "cycles".
// The column `samples` counts those of the column behind it.
inline constexpr const char* kSampleCountSuffix = "_samples";

// The samples that divide the column; none if the profile does not count them. What is in [lost]
// and [residual] is unknown: nothing says whose it is. See core/share_error.h.
EffectiveSamples SamplesBehind(const Profile& profile, std::size_t column);

// part / whole; 0 if the whole is 0.
double ShareOf(std::int64_t part, std::int64_t whole);

}  // namespace strobe::internal
