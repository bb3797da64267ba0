// CommandProcess: a child process that waits before it runs a command.
#pragma once

#include <csignal>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "descriptor.h"

namespace strobe::internal {

class CommandProcess {
 public:
  // Forks. `signals` are those that the command finds blocked. The calling process must have one
  // thread.
  static absl::StatusOr<std::unique_ptr<CommandProcess>> Start(std::vector<std::string> command,
                                                               const sigset_t& signals);
  // A command that has not run yet never runs.
  ~CommandProcess();
  CommandProcess(const CommandProcess&) = delete;
  CommandProcess& operator=(const CommandProcess&) = delete;

  [[nodiscard]] pid_t id() const { return id_; }
  // Lets the command run. NotFound or PermissionDenied if it cannot be.
  absl::Status Run();
  // The status that waitpid gives, once the command has ended.
  [[nodiscard]] std::optional<int> status() const { return status_; }
  // Sees whether it has ended, or waits until it has.
  bool HasEnded();
  void Wait();

 private:
  CommandProcess(pid_t id, Descriptor go, Descriptor error)
      : id_(id), go_(std::move(go)), error_(std::move(error)) {}
  void Reap(int flags);

  const pid_t id_;
  Descriptor go_;     // a byte in it lets the child run the command
  Descriptor error_;  // says why it could not
  std::optional<int> status_;
};

// What a shell says of a command that has ended: 128 and the signal's number if it was killed.
int ShellStatus(int wait_status);
// Ends this process as the command has ended, by the same signal if it was killed by one. Returns
// the status to exit with otherwise.
int EndLike(int wait_status);

}  // namespace strobe::internal
