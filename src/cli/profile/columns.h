// SetColumns: the value types of a profile, more or fewer of them.
#pragma once

#include <span>
#include <vector>

#include "loaded_profile.h"
#include "strobe/core/value_type.h"

namespace strobe::internal {

// Gives the profile these columns, with 0 in those that it lacked. The default value type stays, or
// becomes the last column if it is not among them.
void SetColumns(LoadedProfile& loaded, std::span<const ValueType> types);

// Takes away the levels that the profile has at its end: the columns whose type begins with
// "inuse_", as pprof's heap profiles call them, or "peak_". A later profile of the same process has
// them anew.
void ClearLevels(Profile& profile);

// Those of `types` that are among `others`, in the order of `types`.
std::vector<ValueType> CommonTypes(std::span<const ValueType> types,
                                   std::span<const ValueType> others);
// `types`, and behind them what `others` have beside.
std::vector<ValueType> AllTypes(std::span<const ValueType> types,
                                std::span<const ValueType> others);

}  // namespace strobe::internal
