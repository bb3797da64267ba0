#include "strobe/worker/shared/handshake.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/clock/system_clock.h"

namespace strobe::internal {
namespace {

// Room for more descriptors than a message may have: the others are closed.
constexpr std::size_t kRoomForDescriptors = 8;

absl::Status Gone() { return absl::UnavailableError("the other side of the connection has gone"); }

using Descriptors = std::array<int, Message::kMaxDescriptors>;

// Takes the first descriptors out of the control data, and closes all others.
Descriptors TakeDescriptors(msghdr& header) {
  Descriptors taken{-1, -1};
  std::size_t next = 0;
  for (cmsghdr* control = CMSG_FIRSTHDR(&header); control != nullptr;
       control = CMSG_NXTHDR(&header, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(control) + i * sizeof(int), sizeof(int));
      if (next < taken.size()) {
        taken[next++] = descriptor;
      } else {
        close(descriptor);
      }
    }
  }
  return taken;
}

void CloseAll(const Descriptors& descriptors) {
  for (const int descriptor : descriptors) {
    if (descriptor >= 0) close(descriptor);
  }
}

absl::Status Wrong(absl::StatusCode code, const char* what, const Descriptors& descriptors) {
  CloseAll(descriptors);
  return {code, absl::StrCat("no message of this version: ", what)};
}

absl::Status Elsewhere() {
  return absl::UnavailableError(
      "the calling thread has files of its own (unshare): only a thread that shares the program's "
      "files reaches the worker");
}

}  // namespace

void CloseDescriptors(const Message& message) { CloseAll(message.descriptors); }

void WorkerSocket::Tie(WorkerSocket& one, WorkerSocket& other) {
  one.has_hung_up_ = other.has_hung_up_ = std::make_shared<std::atomic<bool>>(false);
}

void WorkerSocket::HangUp() {
  if (has_hung_up_ != nullptr) has_hung_up_->store(true, std::memory_order_relaxed);
  descriptor_.Close();
}

void WorkerSocket::EndWaits() const { shutdown(descriptor(), SHUT_RD); }

// Waits until there is something to read, or the end.
absl::Status WorkerSocket::AwaitMessage(std::int64_t timeout_ns) const {
  const int socket = descriptor();
  if (socket < 0) return IsElsewhere() ? Elsewhere() : Gone();
  pollfd ready{.fd = socket, .events = POLLIN, .revents = 0};
  const int timeout_ms =
      timeout_ns < 0
          ? -1
          : static_cast<int>(std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, INT_MAX));
  int count = -1;
  do {
    count = poll(&ready, 1, timeout_ms);
  } while (count < 0 && errno == EINTR);
  if (count != 0) return absl::OkStatus();
  if (has_hung_up_ != nullptr && has_hung_up_->load(std::memory_order_relaxed)) return Gone();
  return absl::DeadlineExceededError("the other side has not answered in time");
}

absl::Status WorkerSocket::Send(const Message& message) const {
  if (message.text.size() > Message::kMaxTextBytes)
    return absl::InvalidArgumentError("the message is too long");
  MessageHead head{.kind = message.kind,
                   .code = message.code,
                   .text_bytes = static_cast<std::uint32_t>(message.text.size()),
                   .number = message.number};
  std::array<iovec, 2> parts{iovec{&head, sizeof(head)},
                             iovec{const_cast<char*>(message.text.data()), message.text.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(Descriptors))> control{};
  const auto count = static_cast<std::size_t>(
      std::ranges::count_if(message.descriptors, [](int descriptor) { return descriptor >= 0; }));
  if (count > 0) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr* const rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(count * sizeof(int));
    std::memcpy(CMSG_DATA(rights), message.descriptors.data(), count * sizeof(int));
  }
  ssize_t sent = -1;
  do {
    sent = sendmsg(descriptor(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return absl::UnavailableError("the other side of the connection reads nothing");
  if (sent >= 0) return absl::OkStatus();
  return IsElsewhere() ? Elsewhere() : Gone();
}

absl::StatusOr<Message> WorkerSocket::Receive(std::int64_t timeout_ns) const {
  if (absl::Status status = AwaitMessage(timeout_ns); !status.ok()) return status;
  MessageHead head{};
  std::string text(Message::kMaxTextBytes, '\0');
  std::array<iovec, 2> parts{iovec{&head, sizeof(head)}, iovec{text.data(), text.size()}};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kRoomForDescriptors * sizeof(int))> control{};
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = -1;
  bool is_reset = false;
  do {
    got = recvmsg(descriptor(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    // The other side has gone and had left something unread: what it has sent itself is still here.
    // The system says so once.
  } while (got < 0 && (errno == EINTR || (errno == ECONNRESET && !std::exchange(is_reset, true))));
  if (got < 0) return Gone();
  const Descriptors descriptors = TakeDescriptors(header);
  if (got == 0) {  // the end, or an empty packet
    CloseAll(descriptors);
    return Gone();
  }
  constexpr auto kShape = absl::StatusCode::kInvalidArgument;
  constexpr auto kVersion = absl::StatusCode::kUnimplemented;
  if (static_cast<std::size_t>(got) < sizeof(head))
    return Wrong(kShape, "it is too short", descriptors);
  if (head.magic != MessageHead::kMagic) return Wrong(kVersion, "it begins otherwise", descriptors);
  if (head.version != MessageHead::kVersion)
    return Wrong(kVersion, "it is of another one", descriptors);
  if ((header.msg_flags & MSG_TRUNC) != 0 ||
      head.text_bytes != static_cast<std::size_t>(got) - sizeof(head))
    return Wrong(kShape, "its length is wrong", descriptors);
  text.resize(head.text_bytes);
  return Message{.kind = head.kind,
                 .code = head.code,
                 .number = head.number,
                 .text = std::move(text),
                 .descriptors = descriptors};
}

bool WorkerSocket::HasEnded() const {
  pollfd state{.fd = descriptor(), .events = 0, .revents = 0};
  if (state.fd < 0) return !IsElsewhere();
  return poll(&state, 1, 0) > 0 && (state.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0;
}

absl::Status WorkerSocket::CheckPeer() const {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  if (getsockopt(descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) != 0)
    return absl::PermissionDeniedError("the system does not tell whose process the other side is");
  if (peer.uid != geteuid())
    return absl::PermissionDeniedError(
        absl::StrCat("the other side belongs to the user ", peer.uid));
  return absl::OkStatus();
}

std::int64_t WorkerSocket::PeerProcess() const {
  ucred peer{};
  socklen_t bytes = sizeof(peer);
  return getsockopt(descriptor(), SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 ? peer.pid : 0;
}

absl::Status StatusOf(const Message& message, MessageKind kind) {
  if (message.kind != kind) return absl::InternalError("the worker has answered another question");
  return {static_cast<absl::StatusCode>(message.code), message.text};
}

absl::StatusOr<Message> Ask(const WorkerSocket& worker, MessageKind kind, std::int64_t timeout_ns) {
  static constinit std::atomic<std::uint64_t> last_number{0};
  const std::uint64_t number = last_number.fetch_add(1, std::memory_order_relaxed) + 1;
  if (absl::Status status = worker.Send({.kind = kind, .number = number}); !status.ok())
    return status;
  const SystemClock clock;
  const std::int64_t end_ns = clock.MonotonicNs() + timeout_ns;
  while (true) {
    const std::int64_t left_ns = std::max<std::int64_t>(end_ns - clock.MonotonicNs(), 0);
    absl::StatusOr<Message> answer = worker.Receive(left_ns);
    if (!answer.ok() || answer->number == number) return answer;
    CloseDescriptors(*answer);
  }
}

Message AnswerOf(MessageKind kind, const absl::Status& status, std::uint64_t number) {
  return {.kind = kind,
          .code = static_cast<std::uint32_t>(status.code()),
          .number = number,
          .text = std::string(status.message().substr(0, Message::kMaxTextBytes))};
}

std::string JoinValueTypes(std::span<const ValueType> types) {
  std::string lines;
  for (const ValueType& type : types)
    absl::StrAppend(&lines, std::string(type.type), " ", std::string(type.unit), "\n");
  return lines;
}

std::string JoinHello(const HelloText& hello) {
  Hello head = hello.head;
  head.type_bytes = static_cast<std::uint32_t>(hello.value_types.size());
  head.program_bytes = static_cast<std::uint32_t>(hello.program.size());
  std::string text(sizeof(head), '\0');
  std::memcpy(text.data(), &head, sizeof(head));
  return absl::StrCat(text, hello.program, hello.value_types, hello.options);
}

absl::StatusOr<HelloText> SplitHello(std::string_view text) {
  HelloText hello;
  if (text.size() < sizeof(hello.head)) return absl::InvalidArgumentError("the hello is too short");
  std::memcpy(&hello.head, text.data(), sizeof(hello.head));
  text.remove_prefix(sizeof(hello.head));
  if (hello.head.program_bytes > text.size())
    return absl::InvalidArgumentError("the program's name is longer than the hello");
  hello.program = text.substr(0, hello.head.program_bytes);
  text.remove_prefix(hello.head.program_bytes);
  if (hello.head.type_bytes > text.size())
    return absl::InvalidArgumentError("the value types are longer than the hello");
  hello.value_types = text.substr(0, hello.head.type_bytes);
  hello.options = text.substr(hello.head.type_bytes);
  return hello;
}

}  // namespace strobe::internal
