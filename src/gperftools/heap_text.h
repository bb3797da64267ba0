// HeapText: a heap profile in gperftools' older text format, which both pprofs read.
#pragma once

#include <string>
#include <string_view>

#include "strobe/core/profile.h"

namespace strobe::internal {

// Of what was allocated and of what is in use: empty if the profile does not have all four value
// types. `maps` is /proc/self/maps.
std::string HeapText(const Profile& profile, std::string_view maps);

}  // namespace strobe::internal
