// Sockets of a server that a fork's child must not keep: one that the child holds stays connected
// when the parent closes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::internal {

// The most ports at a time. A child keeps the sockets of those beyond it.
inline constexpr std::size_t kMaxOwnPorts = 4;

// From now on each fork's child closes all sockets whose own end has this TCP port: those that a
// server listens at, and those that it has accepted. Thread-safe, and takes no lock. A child of
// _Fork, vfork or clone keeps them until it calls exec.
void CloseSocketsInChild(std::uint16_t port);
void ForgetSocketsInChild(std::uint16_t port);

}  // namespace strobe::internal
