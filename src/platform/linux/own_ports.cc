#include "strobe/platform/linux/own_ports.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>

namespace strobe::internal {
namespace {

// The ports; 0 is free.
constinit std::array<std::atomic<int>, kMaxOwnPorts> ports{};
constinit std::atomic<bool> is_listening{false};

// The descriptors that are looked at for sockets with an own port. A program with more keeps those
// beyond it.
constexpr int kMaxSearched = 4096;

// The TCP port of the socket's own end; 0 if it is no such socket.
int OwnPort(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return 0;
}

// Runs in the child before fork returns there. The child has one thread.
void CloseOwnPorts() {
  bool has_any = false;
  for (const std::atomic<int>& port : ports)
    has_any = has_any || port.load(std::memory_order_relaxed) != 0;
  for (int descriptor = 0; has_any && descriptor < kMaxSearched; ++descriptor) {
    const int own = OwnPort(descriptor);
    for (const std::atomic<int>& port : ports) {
      if (own != 0 && own == port.load(std::memory_order_relaxed)) close(descriptor);
    }
  }
  for (std::atomic<int>& port : ports) port.store(0, std::memory_order_relaxed);
}

}  // namespace

void CloseSocketsInChild(std::uint16_t port) {
  if (!is_listening.exchange(true, std::memory_order_acq_rel))
    pthread_atfork(nullptr, nullptr, &CloseOwnPorts);
  for (std::atomic<int>& entry : ports) {
    int expected = 0;
    if (entry.compare_exchange_strong(expected, port, std::memory_order_acq_rel)) return;
  }
}

void ForgetSocketsInChild(std::uint16_t port) {
  for (std::atomic<int>& entry : ports) {
    int expected = port;
    if (entry.compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
  }
}

}  // namespace strobe::internal
