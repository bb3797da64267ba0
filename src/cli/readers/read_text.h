// ReadFolded: folded stacks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"
#include "strobe/core/value_type.h"

namespace strobe::internal {

// What the numbers of folded stacks are. The format does not say it.
struct FoldedUnit {
  ValueType type{"samples", "count"};
  std::int64_t factor = 1;  // from the number to the type's unit
};
// By the name of the unit: samples, ns, us, ms, s, bytes. Nothing for other names.
std::optional<FoldedUnit> FindFoldedUnit(std::string_view name);
// "samples, ns, ...".
std::string FoldedUnitNames();

// True if `line` is "root;...;leaf COUNT".
bool IsFoldedStack(std::string_view line);

// Lines as that. Empty lines and those that begin with '#' are left out.
absl::StatusOr<LoadedProfile> ReadFolded(Input& input, const FoldedUnit& unit = {});

}  // namespace strobe::internal
