// SymbolOrderText: an order of a program's functions, for its linker.
#pragma once

#include <cstdint>
#include <string>

#include "code_samples.h"

namespace strobe::internal {

// A group of functions does not grow beyond this, because one at its end is far from its caller.
inline constexpr std::uint64_t kMaxGroupBytes = std::uint64_t{1} << 20;

// A symbol a line, for lld's --symbol-ordering-file. Functions that call each other stand together:
// each function, the most sampled first, is put behind the group of the caller that it has most
// samples of. The groups with the most samples a byte come first. This is the heuristic C3 of
// "Optimizing Function Placement for Large-Scale Data-Center Applications" (Ottoni and Maher, CGO
// 2017). Functions without samples of their own, which only call others, come last.
std::string SymbolOrderText(const CodeSamples& code);

}  // namespace strobe::internal
