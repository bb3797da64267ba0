// ListeningSocket: where the programs of a user find one worker for all of them, by a path.
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/worker/shared/handshake.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The environment variable with the path, which a program's children inherit.
inline constexpr const char* kWorkerSocketVariable = "STROBE_WORKER_SOCKET";

// $XDG_RUNTIME_DIR/strobe/worker.sock; without that variable, /tmp/strobe-UID/worker.sock.
std::string DefaultWorkerSocket();

// In a program: a connection to the worker that listens at the path. Unavailable if none does, or
// if it does not accept in time. PermissionDenied unless the directory is private, as below, and
// the worker is of the same user.
absl::StatusOr<WorkerSocket> ConnectToWorker(const std::string& path);

// Exists for as long as the object. Its directory must be the user's own, and closed to others
// (mode 0700): another user can then neither connect nor listen in the worker's place.
class ListeningSocket {
 public:
  // Connections that wait to be accepted.
  static constexpr int kBacklog = 128;

  // Makes the directory if it does not exist; replaces the socket of a worker that has died.
  // InvalidArgument if the path is not absolute; AlreadyExists if another worker listens there;
  // PermissionDenied if the directory is not private; Unavailable if the system refuses.
  static absl::StatusOr<ListeningSocket> Open(const std::string& path);

  ListeningSocket(ListeningSocket&& other) noexcept;
  ListeningSocket& operator=(ListeningSocket&& other) = delete;
  // Removes the path.
  ~ListeningSocket();

  // Readable when a connection waits.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  // Does not wait. Unavailable if no connection waits, ResourceExhausted if the process or the
  // system has no descriptor left for it.
  [[nodiscard]] absl::StatusOr<WorkerSocket> Accept() const;

 private:
  ListeningSocket() = default;

  std::string path_;
  int directory_ = -1;
  int lock_ = -1;  // locked by the worker that listens, and never removed
  int descriptor_ = -1;
};

}  // namespace internal
}  // namespace strobe
