// Sockets that a library opens for the profiler. A fork's child must not keep them: a socket that the
// child holds stays connected when the parent closes it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::internal {

// The most sockets at a time. A child keeps those beyond it.
inline constexpr std::size_t kMaxOwnDescriptors = 64;

// Takes over an open socket, and moves it to a high number, which is the result. From now on each
// fork's child closes it. Thread-safe, and takes no lock. A child of _Fork, vfork or clone keeps the
// socket until it calls exec, which closes it.
int OwnDescriptor(int open_number);
// Closes it, unless the program has closed it or has put another file in its place.
void CloseOwnDescriptor(int number);

// The same for all sockets whose own end has this TCP port: those that a server listens at, and
// those that it has accepted. For kMaxOwnPorts at a time.
inline constexpr std::size_t kMaxOwnPorts = 4;
void CloseSocketsInChild(std::uint16_t port);
void ForgetSocketsInChild(std::uint16_t port);

}  // namespace strobe::internal
