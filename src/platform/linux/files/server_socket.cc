#include "strobe/platform/linux/server_socket.h"

#include <pthread.h>
#include <sys/socket.h>

#include <array>
#include <atomic>

namespace strobe::internal {
namespace {

enum class PlaceState { kFree, kChanging, kTaken };

struct Place {
  std::atomic<PlaceState> state{PlaceState::kFree};
  KnownFile file;
};
constinit std::array<Place, kMaxServerSockets> socket_places{};
constinit std::atomic<bool> is_closing_in_children{false};

// Runs in the child before fork returns there. The child has one thread. What another thread of
// the parent was changing is not looked at.
void CloseAll() {
  for (Place& place : socket_places) {
    if (place.state.load(std::memory_order_acquire) == PlaceState::kTaken) place.file.Close();
    place.state.store(PlaceState::kFree, std::memory_order_relaxed);
  }
}

}  // namespace

ServerSocket::ServerSocket(int number) : file_(KnownFile::Of(number)) {
  if (number < 0) return;
  if (!is_closing_in_children.exchange(true, std::memory_order_acq_rel))
    pthread_atfork(nullptr, nullptr, &CloseAll);
  for (std::size_t i = 0; i < socket_places.size() && place_ == kNoPlace; ++i) {
    auto expected = PlaceState::kFree;
    if (!socket_places[i].state.compare_exchange_strong(expected, PlaceState::kChanging)) continue;
    socket_places[i].file = file_;
    socket_places[i].state.store(PlaceState::kTaken, std::memory_order_release);
    place_ = i;
  }
}

ServerSocket::~ServerSocket() {
  if (const int number = file_.Number(); number >= 0) shutdown(number, SHUT_RDWR);
  file_.Close();
  // In a fork's child the place may be another socket's by now.
  if (place_ != kNoPlace && socket_places[place_].file.identity == file_.identity)
    socket_places[place_].state.store(PlaceState::kFree, std::memory_order_release);
}

}  // namespace strobe::internal
