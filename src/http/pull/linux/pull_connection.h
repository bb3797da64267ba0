// PullConnection: one client of the pull server, from its connection to its end. No call waits.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "../request_head.h"
#include "strobe/base/visibility.h"
#include "strobe/http/pull_handler.h"
#include "strobe/platform/linux/server_socket.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Holds kMaxHeadBytes of what the client sends, and the answer until it has taken it. A body is not
// looked at: up to kMaxBodyBytes of it are passed over, so that the client reads the answer, which
// an earlier end would lose.
class PullConnection {
 public:
  using Instant = std::chrono::steady_clock::time_point;

  // `socket` does not block.
  PullConnection(ServerSocket socket, Instant now);

  // What to wait for on the socket.
  [[nodiscard]] pollfd Wanted() const;
  // Does what can be done. The request, once it is whole; it is to be answered.
  std::optional<PullRequest> Proceed(Instant now);
  void Answer(const PullResponse& response, Instant now);

  // The client is waited for until then.
  [[nodiscard]] Instant deadline() const { return deadline_; }
  [[nodiscard]] bool is_being_answered() const { return step_ == Step::kAnswering; }
  [[nodiscard]] bool IsOver(Instant now) const {
    return step_ == Step::kOver || (!is_being_answered() && now >= deadline_);
  }

 private:
  enum class Step { kReading, kAnswering, kWriting, kDiscarding, kOver };

  std::optional<PullRequest> Read(int number, Instant now);
  void Write(int number, Instant now);
  void Discard(int number);

  ServerSocket socket_;
  Instant deadline_;
  Step step_ = Step::kReading;
  std::string head_;
  std::string answer_;
  std::size_t written_bytes_ = 0;
  std::size_t passed_bytes_ = 0;
};

}  // namespace internal
}  // namespace strobe
