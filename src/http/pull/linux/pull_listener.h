// PullListener: the socket that the pull server listens at, its connections, and its threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "pull_connection.h"
#include "pull_workers.h"
#include "strobe/base/visibility.h"
#include "strobe/http/pull_handler.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/server_socket.h"
#include "strobe/platform/native.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
namespace strobe::internal {

// One thread does all that has to do with connections, and never waits for one of them.
class PullListener {
 public:
  // A further one ends the oldest that is not being answered.
  static constexpr std::size_t kMaxConnections = 64;

  explicit PullListener(PullHandler handler) : handler_(std::move(handler)) {}
  ~PullListener() { Stop(); }
  PullListener(const PullListener&) = delete;
  PullListener& operator=(const PullListener&) = delete;

  // Unavailable if the address cannot be used. To be called once.
  absl::Status Start(const std::string& address, int port);
  // Ends the recordings, says so to who waits for them, and ends all connections.
  void Stop();
  [[nodiscard]] int port() const { return port_; }
  // False in a fork's child, which has none of the threads. It must leave the object as it is.
  [[nodiscard]] bool IsOfThisProcess() const { return NativePlatform::ProcessId() == process_; }

 private:
  using Instant = PullConnection::Instant;
  using Connections = std::map<std::uint64_t, PullConnection>;  // by number: the oldest first

  absl::Status Listen();
  void Run();
  void Round();
  void Wait();
  void Accept(Instant now);
  // The oldest that is not being answered.
  Connections::iterator Oldest();
  bool HasRoom() { return connections_.size() < kMaxConnections || Oldest() != connections_.end(); }
  void Wake() const;

  const PullHandler handler_;
  std::string address_;
  int port_ = -1;
  std::uint64_t process_ = 0;
  ServerSocket listening_;
  // A pair of sockets. An eventfd would not do: the program's own cannot be told from it.
  Descriptor waker_;
  Descriptor awaited_;
  Connections connections_;
  Instant next_accept_{};
  std::uint64_t next_connection_ = 0;
  std::atomic<bool> is_stopped_{false};
  PullWorkers workers_{handler_, [this] { Wake(); }};
  NativePlatform::OwnThread thread_;
};

}  // namespace strobe::internal
#pragma GCC diagnostic pop
