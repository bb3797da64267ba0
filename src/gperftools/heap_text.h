// HeapText: a heap profile in gperftools' older text format, which both pprofs read.
#pragma once

#include <string>
#include <string_view>

#include "strobe/core/profile.h"

namespace strobe::internal {

// The profile has the value types of AllocationProvider. `maps` is /proc/self/maps.
std::string HeapText(const Profile& profile, std::string_view maps);

}  // namespace strobe::internal
