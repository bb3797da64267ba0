// How a process learns that it is a fork's child, and what is held over a fork.
#pragma once

#include <cstdint>

namespace strobe::internal {

// See Platform::ForkCount.
std::uint64_t ForkCount();

}  // namespace strobe::internal
