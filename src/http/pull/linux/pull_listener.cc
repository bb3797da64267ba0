#include "pull_listener.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "strobe/base/memory_guard.h"
#include "strobe/platform/refused_thread.h"

namespace strobe::internal {
namespace {

// The longest wait. The program may close any file, and with it what would end the wait.
constexpr std::chrono::milliseconds kMaxWait{1000};

struct AddressesCloser {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};
using Addresses = std::unique_ptr<addrinfo, AddressesCloser>;

// nullptr if there are none; `reason` is why.
Addresses AddressesOf(const std::string& name, int port, const char*& reason) {
  addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.c_str(), absl::StrCat(port).c_str(), &wanted, &found);
  if (error == 0) return Addresses(found);
  reason = gai_strerror(error);
  return nullptr;
}

// Of none if the system refuses; `error` is why.
ServerSocket ListenAt(const addrinfo& address, int& error) {
  ServerSocket listening(
      socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, address.ai_protocol));
  const int is_on = 1;
  const int number = listening.get();
  if (number < 0) {
    error = errno;
    return {};
  }
  setsockopt(number, SOL_SOCKET, SO_REUSEADDR, &is_on, sizeof(is_on));
  if (bind(number, address.ai_addr, address.ai_addrlen) != 0 || listen(number, SOMAXCONN) != 0) {
    error = errno;
    return {};
  }
  return listening;
}

int PortOf(int number) {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(number, reinterpret_cast<sockaddr*>(&address), &size) != 0) return -1;
  if (address.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

absl::Status PullListener::Start(const std::string& address, int port) {
  address_ = address;
  port_ = port;
  process_ = NativePlatform::ProcessId();
  if (absl::Status status = Listen(); !status.ok()) return status;
  port_ = PortOf(listening_.get());  // also the one to listen at again
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return absl::ResourceExhaustedError(
        absl::StrCat("the system refuses a socket for the server: ", std::strerror(errno)));
  waker_ = Descriptor(ends[0]);
  awaited_ = Descriptor(ends[1]);
  if (absl::Status status = workers_.Start(); !status.ok()) return status;
  thread_ = NativePlatform::RunOnOwnThread("strobe-pull", [this] { Run(); });
  return StatusOfThread("the server", thread_);
}

void PullListener::Stop() {
  handler_.Cancel();
  workers_.Stop();
  is_stopped_ = true;
  Wake();
  thread_.Join();
}

absl::Status PullListener::Listen() {
  const char* reason = "no address";
  const Addresses addresses = AddressesOf(address_, port_, reason);
  for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
    int error = 0;
    listening_ = ListenAt(*one, error);
    if (listening_.get() >= 0) return absl::OkStatus();
    reason = std::strerror(error);
  }
  return absl::UnavailableError(
      absl::StrCat("cannot listen at ", address_, ":", port_, ": ", reason));
}

// A full one wakes as well.
void PullListener::Wake() const { send(waker_.get(), "", 1, MSG_NOSIGNAL); }

void PullListener::Run() {
  while (!is_stopped_) {
    if (HasMemoryFor([this] { Round(); })) continue;
    connections_.clear();
    std::this_thread::sleep_for(kMaxWait / 10);  // memory may come back
  }
  // Who waits for a recording that has been ended is told so.
  static_cast<void>(HasMemoryFor([this] { Round(); }));
  // This thread closes it: the caller of Stop may have a table of files of its own.
  connections_.clear();
  listening_ = {};
}

void PullListener::Round() {
  if (!is_stopped_) Wait();
  const Instant now = std::chrono::steady_clock::now();
  for (const PullWorkers::Answer& answer : workers_.TakeAnswers()) {
    const auto asked = connections_.find(answer.connection);
    if (asked != connections_.end()) asked->second.Answer(answer.response, now);
  }
  if (!is_stopped_) Accept(now);
  for (auto& [number, connection] : connections_) {
    if (std::optional<PullRequest> request = connection.Proceed(now))
      workers_.Ask(number, *std::move(request));
  }
  std::erase_if(connections_, [now](const auto& entry) { return entry.second.IsOver(now); });
}

void PullListener::Wait() {
  Instant until = std::chrono::steady_clock::now() + kMaxWait;
  const bool can_accept = HasRoom() && std::chrono::steady_clock::now() >= next_accept_;
  std::vector<pollfd> files = {
      {.fd = awaited_.get(), .events = POLLIN, .revents = 0},
      {.fd = can_accept ? listening_.get() : -1, .events = POLLIN, .revents = 0}};
  for (const auto& [number, connection] : connections_) {
    files.push_back(connection.Wanted());
    if (!connection.is_being_answered()) until = std::min(until, connection.deadline());
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
  poll(files.data(), files.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  std::array<char, 64> wakes{};
  recv(awaited_.get(), wakes.data(), wakes.size(), 0);
}

void PullListener::Accept(Instant now) {
  // The program has closed it: a daemon closes all that it has not opened.
  if (listening_.get() < 0) static_cast<void>(Listen());
  // A bounded number at a time, so that the others are served in between.
  for (std::size_t i = 0; i < kMaxConnections && now >= next_accept_ && HasRoom(); ++i) {
    const int number = accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (number < 0) {
      // A process that has no number left, for one, has none a moment later.
      if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) next_accept_ = now + kMaxWait;
      return;
    }
    if (connections_.size() == kMaxConnections) connections_.erase(Oldest());
    connections_.try_emplace(next_connection_++, ServerSocket(number), now);
  }
}

PullListener::Connections::iterator PullListener::Oldest() {
  return std::ranges::find_if(connections_,
                              [](const auto& entry) { return !entry.second.is_being_answered(); });
}

}  // namespace strobe::internal
