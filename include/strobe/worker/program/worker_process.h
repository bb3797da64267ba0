// WorkerProcess: begins a worker, and ends it; or joins one that serves all programs of the user. A
// process is no child of the program: no SIGCHLD, and no wait() returns it. As a fallback, the
// worker is a thread of the program.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The argument that makes a program a worker. The socket to its program is descriptor
// kWorkerSocket.
inline constexpr const char* kWorkerArgument = "--strobe-worker";
inline constexpr int kWorkerSocket = 3;

class WorkerProcess {
 public:
  WorkerProcess() = default;
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess& operator=(WorkerProcess&& other) noexcept;
  // Ends it, if it has not ended.
  ~WorkerProcess();

  // Begins `command`, or the program itself if that is empty, in a session of its own, so that no
  // signal of the terminal reaches it. It may read the program's memory (PR_SET_PTRACER).
  static absl::StatusOr<WorkerProcess> Begin(const std::string& command);

  // Joins the worker that listens at the path; End leaves that alone. See ConnectToWorker for the
  // errors.
  static absl::StatusOr<WorkerProcess> Join(const std::string& path);

  // Begins a thread of this process that serves it, whose channels lie in `area`.
  static absl::StatusOr<WorkerProcess> BeginHere(Serve serve, const SharedArea& area);

  [[nodiscard]] const WorkerSocket& socket() const { return socket_; }
  // Waits for the offer of a worker that begins to serve the program: see kWelcomeTimeoutNs, and
  // kJoinTimeoutNs of one that the program has joined.
  [[nodiscard]] absl::StatusOr<Message> AwaitOffer() const;
  // Ends the connection. A process of the program's own may take that time for its end; then it is
  // killed. A thread ends its session first, whatever the time. Needs no memory.
  void End(std::int64_t timeout_ns);

 private:
  void Kill() const;

  LinuxPlatform::OwnThread thread_;
  std::int64_t process_id_ = -1;  // of the program's own worker
  WorkerSocket socket_;
  bool is_joined_ = false;
};

}  // namespace internal
}  // namespace strobe
