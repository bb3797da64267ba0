// MergeProfiles: the sum of profiles.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "loaded_profile.h"

namespace strobe::internal {

// The sum has only what its rows need. So the sum of one profile is that profile without the rest.
// * Code is the same if module, address and lines are. Functions at different addresses, of the
//   same program loaded elsewhere, are different frames of the same function.
// * It begins with the first of the profiles and lasts as long as all of them.
// * Iterations are added up, if all profiles have them.
// * InvalidArgument if the value types are not the same; their order may differ.
absl::StatusOr<LoadedProfile> MergeProfiles(std::span<const LoadedProfile> profiles);

}  // namespace strobe::internal
