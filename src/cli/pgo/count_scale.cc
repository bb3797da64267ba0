#include "count_scale.h"

#include <algorithm>
#include <cmath>

namespace strobe::internal {
namespace {

double LargestCount(const FunctionSamples& function) {
  double largest = function.entries;
  for (const auto& [location, line] : function.lines) largest = std::max(largest, line.count);
  for (const auto& [location, functions] : function.inlined) {
    for (const auto& [name, inlined] : functions)
      largest = std::max(largest, LargestCount(inlined));
  }
  return largest;
}

}  // namespace

CountScale::CountScale(const FunctionSamplesMap& functions, double sample_amount)
    : scale_(kCountOfSample / sample_amount) {
  double largest = 0;
  for (const auto& [name, function] : functions)
    largest = std::max(largest, LargestCount(function));
  if (largest * scale_ > kMaxCount) scale_ = kMaxCount / largest;
}

std::uint64_t CountScale::Of(double count) const {
  if (count <= 0) return 0;
  return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::llround(count * scale_)));
}

}  // namespace strobe::internal
