#include "strobe/platform/linux/own_descriptors.h"

#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

// A socket of the process that has taken the place.
enum class Place : std::uint8_t { kFree, kChanges, kTaken };
struct OwnSocket {
  std::atomic<Place> place{Place::kFree};
  KnownFile file;
};
constinit std::array<OwnSocket, kMaxOwnDescriptors> sockets{};
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

void Listen(void (*in_child)()) {
  if (!is_listening.exchange(true, std::memory_order_acq_rel))
    pthread_atfork(nullptr, nullptr, in_child);
}

// Runs in the child before fork returns there. The child has one thread. What is not a socket of
// ours any more stays: see KnownFile.
void CloseAll() {
  for (OwnSocket& own : sockets) {
    if (own.place.exchange(Place::kFree, std::memory_order_acquire) == Place::kTaken)
      own.file.Close();
  }
  CloseOwnPorts();
}

bool Take(OwnSocket& own, Place from) {
  return own.place.compare_exchange_strong(from, Place::kChanges, std::memory_order_acq_rel);
}

}  // namespace

int OwnDescriptor(int open_number) {
  Listen(&CloseAll);
  const KnownFile file = KnownFile::Of(open_number);
  for (OwnSocket& own : sockets) {
    if (!Take(own, Place::kFree)) continue;
    own.file = file;
    own.place.store(Place::kTaken, std::memory_order_release);
    break;
  }
  return file.number;
}

void CloseOwnDescriptor(int number) {
  for (OwnSocket& own : sockets) {
    if (own.place.load(std::memory_order_acquire) != Place::kTaken || own.file.number != number ||
        !Take(own, Place::kTaken))
      continue;
    own.file.Close();
    own.place.store(Place::kFree, std::memory_order_release);
    return;
  }
  close(number);  // one of too many
}

void CloseSocketsInChild(std::uint16_t port) {
  Listen(&CloseAll);
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
