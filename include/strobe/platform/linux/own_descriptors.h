// Descriptors of files and sockets that a fork's child must not keep: a socket that the child holds
// stays connected when the parent closes it, and a lock that the child holds outlives the parent.
#pragma once

#include <cstddef>

namespace strobe::internal {

// The most descriptors at a time. A child keeps those beyond it.
inline constexpr std::size_t kMaxOwnDescriptors = 64;

// From now on each fork's child closes `descriptor`, until ForgetInChild. Call ForgetInChild before
// the descriptor is closed. Thread-safe, and takes no lock. A child of _Fork, vfork or clone keeps
// the descriptor until it calls exec, so descriptors need O_CLOEXEC as well.
void CloseInChild(int descriptor);
void ForgetInChild(int descriptor);

}  // namespace strobe::internal
