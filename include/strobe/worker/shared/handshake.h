// The messages between a program and its worker, over a unix socket of kind SOCK_SEQPACKET.
// README.md documents them byte by byte.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/value_type.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// How long a worker waits for a program's hello.
inline constexpr std::int64_t kHelloTimeoutNs = 10'000'000'000;
// How long a program waits for the offer, and for the answer to its hello: the worker reads the
// mappings of the program meanwhile.
inline constexpr std::int64_t kWelcomeTimeoutNs = 20'000'000'000;
// How long a program waits for the offer of a worker that it has not begun, and again while that is
// seen to work: it may be stopped, or swapped out. With the offer it has shown that it is not.
inline constexpr std::int64_t kJoinTimeoutNs = 1'000'000'000;

// What a message is. The worker begins with its offer. Of each pair, the program sends the first
// kind, and the worker answers.
enum class MessageKind : std::uint32_t {
  kHello = 1,    // with the descriptor of the shared area
  kWelcome = 2,  // a status
  kFlush = 3,
  kFlushed = 4,  // a status
  kStop = 5,
  kStopped = 6,  // a status
  // With an end of another connection: the recording's, which has the answer. A further message
  // there cancels it.
  kRecord = 7,
  kRecorded = 8,  // a status; if it is OK, with the descriptor of memory with the profile
  kOffer = 16,    // with the descriptors of the memory for tables and of the TableStore's
};

// Each message is this, then `text_bytes` bytes of text.
struct MessageHead {
  static constexpr std::uint64_t kMagic = 0x524B57424F525453;  // "STROBWKR"
  static constexpr std::uint32_t kVersion = 9;

  std::uint64_t magic = kMagic;
  std::uint32_t version = kVersion;
  MessageKind kind{};
  std::uint32_t code = 0;  // an absl::StatusCode in an answer
  std::uint32_t text_bytes = 0;
  std::uint64_t number = 0;  // of a flush or a stop; the answer repeats it
};
static_assert(sizeof(MessageHead) == 32);

// The fixed part of a hello's text. The program's name follows, then its value types, then the
// options, as lines "field=value".
struct Hello {
  std::uint64_t process_id = 0;
  std::uint64_t copy_mark = 0;  // of the program's copy of the library: see ChannelToken
  std::uint32_t signal = 0;     // that interrupts its threads
  std::uint32_t channel_bytes = 0;
  std::uint32_t cells = 0;
  std::uint32_t type_bytes = 0;  // of the value types, which follow the program's name
  std::uint64_t chunk_bytes = 0;
  std::uint32_t ring_bytes = 0;
  std::uint32_t program_bytes = 0;   // of the program's name, which follows
  std::uint64_t tables_address = 0;  // where the program has mapped what the offer has: the memory
  std::uint64_t store_address = 0;   // for tables, and the TableStore's; 0 if it has not
  std::uint64_t worker = 0;          // its number: see SharedAreaHeader
};
static_assert(sizeof(Hello) == 72);

struct Message {
  // A longer one is refused.
  static constexpr std::size_t kMaxTextBytes = 64 * 1024;

  MessageKind kind{};
  std::uint32_t code = 0;
  std::uint64_t number = 0;
  std::string text{};
  // Of a hello: the shared area's. Of an offer: the two of WorkerOffer. -1 for none; a message
  // without the first has no second.
  static constexpr std::size_t kMaxDescriptors = 2;
  std::array<int, kMaxDescriptors> descriptors{-1, -1};
};

// Closes the message's descriptors that are not -1.
void CloseDescriptors(const Message& message);

// An end of the connection. Moves, and closes at its end. One thread at a time sends, and one
// receives.
class WorkerSocket {
 public:
  WorkerSocket() = default;
  // Takes over the descriptor, and moves it: see Descriptor.
  explicit WorkerSocket(int descriptor) : descriptor_(descriptor) {}

  [[nodiscard]] bool is_open() const { return descriptor_.is_open(); }
  // -1 if the program has closed it: then the other side counts as gone.
  [[nodiscard]] int descriptor() const { return descriptor_.get(); }
  // True if the calling thread has files of its own, and so cannot reach the other side.
  [[nodiscard]] bool IsElsewhere() const { return descriptor_.IsElsewhere(); }

  // Makes two ends in one process see that the other hangs up also where the closing of a
  // descriptor does not show it: on a thread that has files of its own.
  static void Tie(WorkerSocket& one, WorkerSocket& other);
  // Closes this end. A tied one sees it when its next wait has timed out, at the latest.
  void HangUp();
  // Ends a wait of another thread for a message, and all later ones, as if the other side had gone.
  void EndWaits() const;

  // Never waits: Unavailable if the other side has gone, or has left so many messages unread that
  // there is no room. Never raises SIGPIPE.
  absl::Status Send(const Message& message) const;
  // Waits for a message, whose descriptors the caller then owns, at most for that time; for ever if
  // it is negative. Unavailable if the other side has gone, DeadlineExceeded, Unimplemented if what
  // came begins otherwise or is of another version, InvalidArgument if its length is wrong.
  [[nodiscard]] absl::StatusOr<Message> Receive(std::int64_t timeout_ns) const;
  // True if the other side has gone; false if the calling thread cannot see it. Does not wait.
  [[nodiscard]] bool HasEnded() const;
  // PermissionDenied if the other side belongs to another user.
  [[nodiscard]] absl::Status CheckPeer() const;
  // The process that has connected, listened, or made the pair; 0 if it is not known.
  [[nodiscard]] std::int64_t PeerProcess() const;

 private:
  [[nodiscard]] absl::Status AwaitMessage(std::int64_t timeout_ns) const;

  Descriptor descriptor_;
  std::shared_ptr<std::atomic<bool>> has_hung_up_;  // nullptr if it is not tied
};

// The answer that `message` is: its code and text. Internal if it is none of that kind.
absl::Status StatusOf(const Message& message, MessageKind kind);
Message AnswerOf(MessageKind kind, const absl::Status& status, std::uint64_t number = 0);

// Sends a request of that kind, and waits for its answer, at most for that time. An answer that
// comes late, to a request before, is passed over. Errors: see Send and Receive.
absl::StatusOr<Message> Ask(const WorkerSocket& worker, MessageKind kind, std::int64_t timeout_ns);

// A hello's text, and back. InvalidArgument if a length in it is wrong.
struct HelloText {
  Hello head{};
  std::string program;
  std::string value_types;  // see JoinValueTypes
  std::string options;
};
// A line "type unit" for each, in the order of their numbers in records.
std::string JoinValueTypes(std::span<const ValueType> types);
std::string JoinHello(const HelloText& hello);
absl::StatusOr<HelloText> SplitHello(std::string_view text);

}  // namespace internal
}  // namespace strobe
