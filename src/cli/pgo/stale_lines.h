// What samples of other builds are still about, in the binary that is built anew.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "function_samples.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

// The locations that have code, by the linkage names of functions.
using FunctionLocations = std::map<std::string, std::set<LineLocation>>;

// Of the functions that are in `samples`, and of what is inlined into them, as far as `binary` has
// them. A function that is beyond kMaxReadBytes is not there, as if the binary did not have it.
FunctionLocations LocationsOf(const FunctionSamplesMap& samples, const Module& binary,
                              const SymbolFiles& files, const SymbolSearch& search,
                              DiscriminatorKind kind);

// Removes functions, lines and calls that `known` does not have. Lines of an inlined function of
// which `known` has nothing stay: it may be elsewhere.
void KeepKnown(FunctionSamplesMap& samples, const FunctionLocations& known);

}  // namespace strobe::internal
