// WorkerListener: one worker process for many programs, which find it by a ListeningSocket.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/listening_socket.h"
#include "strobe/worker/shared/serve_end.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Each connection has a thread of its own, and what is served there has threads of its own. So one
// program can neither delay nor end another's session, and a silent peer delays no other: it keeps
// its place for kHelloTimeoutNs.
class WorkerListener {
 public:
  // At a time. A program takes four threads, and descriptors for each of its threads and images.
  static constexpr std::size_t kMaxPrograms = 256;

  // Serves the program at the other end until that ends, or nothing can be received any more.
  using Serve = std::function<ServeEnd(const WorkerSocket& socket)>;

  WorkerListener(ListeningSocket socket, Serve serve, std::size_t max_programs = kMaxPrograms);
  ~WorkerListener();
  WorkerListener(const WorkerListener&) = delete;
  WorkerListener& operator=(const WorkerListener&) = delete;

  // Accepts programs until the descriptor `stop` is readable; then ends the sessions, and waits for
  // them. Unavailable if the system refuses what the listener needs.
  absl::Status Run(int stop);

  // Of the connections that have ended.
  [[nodiscard]] const ServeEndCounts& counts() const { return counts_; }

 private:
  struct Program {
    WorkerSocket socket;
    ServeEnd end = ServeEnd::kNoRoom;  // as long as the thread has found no memory
    std::atomic<bool> has_ended{false};
    LinuxPlatform::OwnThread thread;
  };

  void AcceptAll();
  void Begin(WorkerSocket socket);
  void Refuse(const WorkerSocket& socket, const absl::Status& why);
  void Count(ServeEnd end) { ++counts_[static_cast<std::size_t>(end)]; }
  void Reap();
  void GiveMemoryBack();
  void EndAll();

  ListeningSocket socket_;
  const Serve serve_;
  const std::size_t max_programs_;
  const int ended_;        // an eventfd, readable when a session has ended
  const int ended_error_;  // why the system refuses it
  ServeEndCounts counts_{};
  std::list<Program> programs_;
  std::int64_t given_back_ns_ = 0;
};

// Serves programs until the process gets SIGTERM, SIGINT or SIGHUP. Calls `announce` when it
// listens. An empty path means DefaultWorkerSocket(). Errors: see ListeningSocket::Open.
using Announce = std::function<void(const std::string& path)>;
absl::StatusOr<ServeEndCounts> ListenWith(const std::string& path, const Announce& announce,
                                          WorkerListener::Serve serve);

}  // namespace internal
}  // namespace strobe
