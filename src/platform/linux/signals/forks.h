// How a process learns that it is a fork's child, and what is held over a fork.
#pragma once

#include <cstdint>

namespace strobe::internal {

// See Platform::ForkCount.
std::uint64_t ForkCount();

// See Platform::FollowForks.
void FollowForks(void (*before)(), void (*in_child)());

}  // namespace strobe::internal
