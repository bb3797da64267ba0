#pragma once

#include <string>
#include <vector>

#include "strobe/core/profile.h"

namespace strobe::internal {

// The profiler's account of a profile's period, one line each, as text for people.
std::vector<std::string> ProfileComments(const Profile& profile);

}  // namespace strobe::internal
