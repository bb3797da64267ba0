// ServerSocket: a socket of a server in the program. No other process keeps its connection open: a
// fork's child closes its copy, and the end of the object ends the connection for all copies.
#pragma once

#include <cstddef>
#include <utility>

#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The most at a time. A fork's child keeps those beyond them, as does a child of _Fork, vfork or
// clone, until it calls exec.
inline constexpr std::size_t kMaxServerSockets = 256;

// Owns the socket, as Descriptor does. Takes no lock.
class ServerSocket {
 public:
  ServerSocket() = default;
  // Takes over the socket. -1 stands for none.
  explicit ServerSocket(int number);
  ServerSocket(ServerSocket&& other) noexcept
      : file_(std::exchange(other.file_, {})), place_(std::exchange(other.place_, kNoPlace)) {}
  ServerSocket& operator=(ServerSocket&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~ServerSocket();

  // The number; -1 if there is none, or if the program has taken it.
  [[nodiscard]] int get() const { return file_.Number(); }

 private:
  static constexpr std::size_t kNoPlace = ~std::size_t{0};

  KnownFile file_;
  std::size_t place_ = kNoPlace;  // among those that a child closes
};

}  // namespace internal
}  // namespace strobe
