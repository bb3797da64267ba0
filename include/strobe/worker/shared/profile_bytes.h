// ProfileBytes: a Profile as bytes, from a worker to its program. Both are of the same build, so
// the format has no version: it is the fields in the order of profile_bytes.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/value_type.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

std::string ProfileBytes(const Profile& profile);
// Of any bytes: InvalidArgument unless they are a whole profile whose indices are all in range.
// `known` has the value types that it may have; they have static storage.
absl::StatusOr<Profile> ProfileFrom(std::string_view bytes, std::span<const ValueType> known);

}  // namespace internal
}  // namespace strobe
