#include "strobe/worker/shared/recording_messages.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/worker/shared/profile_bytes.h"

namespace strobe::internal {
namespace {

// How often a waiting call looks whether it is cancelled.
constexpr std::int64_t kCancelCheckNs = 100'000'000;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;

// The fixed part of a call's text; the names of the value types follow, a line each.
struct RecordingHead {
  std::int64_t duration_ms = 0;
  std::int64_t last_ms = 0;
  std::int64_t dumps = 0;  // 0 or 1
  double frequency_hz = 0;
};

// -1 if the system refuses.
int SealedMemory(std::string_view bytes) {
  const int memory = memfd_create("strobe-profile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0) return -1;
  while (!bytes.empty()) {
    const ssize_t written = write(memory, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  if (bytes.empty() && fcntl(memory, F_ADD_SEALS, kSeals) == 0) return memory;
  close(memory);
  return -1;
}

std::optional<std::string> ReadSealed(int memory) {
  struct stat info {};
  if ((fcntl(memory, F_GET_SEALS) & kSeals) != kSeals || fstat(memory, &info) != 0 ||
      static_cast<std::uint64_t>(info.st_size) > kMaxSentProfileBytes)
    return std::nullopt;
  std::string bytes(static_cast<std::size_t>(info.st_size), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        pread(memory, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return std::nullopt;
    done += static_cast<std::size_t>(got);
  }
  return bytes;
}

absl::StatusOr<Profile> ProfileIn(const Message& answer, std::span<const ValueType> known) {
  const Descriptor memory(answer.descriptors[0]);
  const Descriptor further(answer.descriptors[1]);
  if (absl::Status status = StatusOf(answer, MessageKind::kRecorded); !status.ok()) return status;
  const std::optional<std::string> bytes = ReadSealed(memory.get());
  if (!bytes) return absl::InternalError("the worker has sent no sealed memory with a profile");
  return ProfileFrom(*bytes, known);
}

}  // namespace

std::string JoinRecording(const RecordingRequest& request) {
  const RecordingOptions& options = request.options;
  const RecordingHead head{.duration_ms = options.duration.count(),
                           .last_ms = options.last.count(),
                           .dumps = request.dumps ? 1 : 0,
                           .frequency_hz = options.frequency_hz};
  std::string text(sizeof(head), '\0');
  std::memcpy(text.data(), &head, sizeof(head));
  return absl::StrCat(text, absl::StrJoin(options.value_types, "\n"));
}

absl::StatusOr<RecordingRequest> SplitRecording(std::string_view text) {
  RecordingHead head;
  if (text.size() < sizeof(head)) return absl::InvalidArgumentError("the call is too short");
  std::memcpy(&head, text.data(), sizeof(head));
  text.remove_prefix(sizeof(head));
  RecordingOptions options{.duration = std::chrono::milliseconds(head.duration_ms),
                           .last = std::chrono::milliseconds(head.last_ms),
                           .frequency_hz = head.frequency_hz};
  if (!text.empty())
    options.value_types = absl::StrSplit(absl::string_view(text.data(), text.size()), '\n');
  if (absl::Status status = Validate(options); !status.ok()) return status;
  return RecordingRequest{.options = std::move(options), .dumps = head.dumps != 0};
}

absl::Status SendProfile(const WorkerSocket& socket, const absl::StatusOr<Profile>& profile) {
  Message answer = AnswerOf(MessageKind::kRecorded, profile.status());
  std::string bytes;
  if (profile.ok()) bytes = ProfileBytes(*profile);
  const Descriptor memory(profile.ok() && bytes.size() <= kMaxSentProfileBytes ? SealedMemory(bytes)
                                                                               : -1);
  if (profile.ok() && memory.get() < 0) {
    answer = AnswerOf(MessageKind::kRecorded,
                      absl::ResourceExhaustedError("no memory to send the profile"));
  }
  answer.descriptors[0] = memory.get();
  return socket.Send(answer);
}

absl::StatusOr<SocketPair> MakeSocketPair() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return absl::ResourceExhaustedError(absl::StrCat("no socket: ", std::strerror(errno)));
  return SocketPair{.own = WorkerSocket(ends[0]), .other = WorkerSocket(ends[1])};
}

absl::StatusOr<Profile> AwaitProfile(const WorkerSocket& socket, const RecordingOptions& options,
                                     std::span<const ValueType> known,
                                     std::chrono::nanoseconds patience) {
  const bool is_of_before = options.last.count() != 0;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  bool is_cancelled = false;
  while (true) {
    const absl::StatusOr<Message> answer = socket.Receive(kCancelCheckNs);
    if (answer.ok()) return ProfileIn(*answer, known);
    if (!absl::IsDeadlineExceeded(answer.status())) return answer.status();
    if (is_of_before && std::chrono::steady_clock::now() >= deadline)
      return absl::DeadlineExceededError("the worker has not answered in time");
    if (is_cancelled || options.cancelled == nullptr || !*options.cancelled) continue;
    if (is_of_before) return absl::CancelledError("the call was cancelled");
    is_cancelled = true;
    if (absl::Status status = socket.Send({.kind = MessageKind::kRecord}); !status.ok())
      return status;
  }
}

}  // namespace strobe::internal
