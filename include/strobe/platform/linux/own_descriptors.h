// Descriptors of files and sockets that a fork's child must not keep: a socket that the child holds
// stays connected when the parent closes it, and a lock that the child holds outlives the parent.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::internal {

// The most descriptors at a time. A child keeps those beyond it.
inline constexpr std::size_t kMaxOwnDescriptors = 64;

// From now on each fork's child closes `descriptor`, until ForgetInChild. Call ForgetInChild before
// the descriptor is closed. Thread-safe, and takes no lock. A child of _Fork, vfork or clone keeps
// the descriptor until it calls exec, so descriptors need O_CLOEXEC as well.
void CloseInChild(int descriptor);
void ForgetInChild(int descriptor);

// The same for all sockets whose own end has this TCP port: those that a server listens at, and
// those that it has accepted. For kMaxOwnPorts at a time.
inline constexpr std::size_t kMaxOwnPorts = 4;
void CloseSocketsInChild(std::uint16_t port);
void ForgetSocketsInChild(std::uint16_t port);

}  // namespace strobe::internal
