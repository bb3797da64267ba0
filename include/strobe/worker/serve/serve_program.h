// ServeProgram: what a worker does with a connection, from the program's hello to its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/export/parts.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/worker/program/worker_process.h"
#include "strobe/worker/serve/worker_platform.h"
#include "strobe/worker/serve/worker_session.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/serve_end.h"
#include "strobe/worker/shared/worker_offer.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Sets the options from lines "field=value". InvalidArgument if one is not accepted.
absl::Status SetOptions(std::string_view lines, ProfilerOptions& options);

// For all programs that this process serves; made at the first call. nullptr where the system
// refuses the memory: each program then has copies of its own.
const std::shared_ptr<TableStore>& StoreOfAll();

// None where the system refuses it.
TableMemory MemoryForTables();

// What a hello asks for. A program of this process sends no descriptor: it has given `own_area`.
struct AskedSession {
  ServedProgram program;
  ProfilerOptions options;
  Address tables_address = 0;  // where the program has mapped the offer's memory; 0 if it has not
};
// The signals that Linux has: 1 to this.
inline constexpr std::uint32_t kMaxSignal = 64;

// True if the program measures what a profiler of these Traits does.
template <class Traits>
bool HasValueTypes(const HelloText& hello) {
  static constexpr auto kTypes = Traits::Providers::AllValueTypes();
  return hello.value_types == JoinValueTypes(kTypes);
}

// InvalidArgument if the worker cannot serve a program with such a hello.
template <class Traits>
absl::Status CheckHello(const HelloText& hello, std::uint64_t chunk_bytes) {
  using Channel = typename ChannelArena<WorkerTraitsOf<Traits>>::Channel;
  const Hello& head = hello.head;
  if (!HasValueTypes<Traits>(hello) || head.channel_bytes != sizeof(Channel) ||
      head.cells != Traits::Providers::kCellCount || head.chunk_bytes != chunk_bytes)
    return absl::InvalidArgumentError("the program has other parts than its worker");
  if (head.signal > kMaxSignal) return absl::InvalidArgumentError("there is no such signal");
  return absl::OkStatus();
}

// The text of a program's first message. For the errors, see ReadHello.
inline absl::StatusOr<HelloText> SplitMessage(const Message& message, const SharedArea* own_area) {
  if (message.kind != MessageKind::kHello)
    return absl::InvalidArgumentError("the first message is no hello");
  if (own_area == nullptr && (message.descriptors[0] < 0 || message.descriptors[1] >= 0))
    return absl::FailedPreconditionError("a hello comes with one descriptor of memory");
  return SplitHello(message.text);
}

// Takes over the message's descriptors; closes them if it refuses. InvalidArgument for what the
// hello says, FailedPrecondition for the memory that comes with it.
template <class Traits>
absl::StatusOr<AskedSession> ReadHello(const Message& message,
                                       const SharedArea* own_area = nullptr) {
  const auto refuse = [&](const absl::Status& status) {
    CloseDescriptors(message);
    return status;
  };
  absl::StatusOr<HelloText> hello = SplitMessage(message, own_area);
  if (!hello.ok()) return refuse(hello.status());
  AskedSession asked;
  if (absl::Status status = SetOptions(hello->options, asked.options); !status.ok())
    return refuse(status);
  using Arena = ChannelArena<WorkerTraitsOf<Traits>>;
  const Hello& head = hello->head;
  const std::uint64_t chunk_bytes =
      Arena::ChunkBytes(static_cast<std::size_t>(*asked.options.threads.ring_bytes));
  if (absl::Status status = CheckHello<Traits>(*hello, chunk_bytes); !status.ok())
    return refuse(status);
  asked.program.process_id = head.process_id;
  asked.program.name = std::move(hello->program);
  asked.program.signal = static_cast<int>(head.signal);
  asked.program.copy_mark = head.copy_mark;
  asked.program.worker = static_cast<std::uint32_t>(head.worker);
  if (own_area != nullptr) {
    asked.program.area = *own_area;
    asked.program.is_own = true;
    return asked;
  }
  absl::StatusOr<SharedArea> area =
      SharedArea::Adopt(message.descriptors[0], Arena::kChannelsPerChunk, chunk_bytes);
  if (!area.ok()) return absl::FailedPreconditionError(area.status().message());
  asked.program.area = *area;
  asked.program.store_address = head.store_address;
  asked.tables_address = head.tables_address;
  return asked;
}

// How often the worker looks whether the program has ended. The socket does not always say it: a
// forked child of the program may hold it open.
inline constexpr std::int64_t kEndCheckPeriodNs = 1'000'000'000;

// How a program has ended whose session ends with that message, or with none.
inline std::string EndBy(const absl::StatusOr<Message>& message) {
  if (message.ok() && message->kind == MessageKind::kStop) return "stopped";
  if (message.ok() || absl::IsInvalidArgument(message.status()) ||
      absl::IsUnimplemented(message.status()))
    return "sent what is no message";
  return WorkerPlatform::HowEnded();
}

// A program's hello, and the memory for tables that the program has been offered before.
struct Greeting {
  Message hello;
  std::shared_ptr<TableStore> store{};
  TableMemory tables{};
};

// A program in this process reads the tables where they are.
inline absl::StatusOr<Greeting> ReceiveHello(const WorkerSocket& socket,
                                             const SharedArea* own_area) {
  if (absl::Status peer = socket.CheckPeer(); !peer.ok()) return peer;
  Greeting greeting;
  if (own_area == nullptr) {
    greeting.store = StoreOfAll();
    greeting.tables = MemoryForTables();
  }
  const Message offer = JoinOffer(greeting.tables, greeting.store.get());
  if (absl::Status sent = socket.Send(offer); !sent.ok()) return sent;
  absl::StatusOr<Message> hello = socket.Receive(kHelloTimeoutNs);
  if (!hello.ok()) return hello.status();
  greeting.hello = *std::move(hello);
  return greeting;
}

// What the program asks for. See RefusalOf for the errors.
template <class Traits>
absl::StatusOr<AskedSession> ReadGreeting(const WorkerSocket& socket, Greeting greeting,
                                          const SharedArea* own_area) {
  absl::StatusOr<AskedSession> asked = ReadHello<Traits>(greeting.hello, own_area);
  if (!asked.ok()) return asked;
  // Numbers of processes and threads are those of one namespace.
  if (static_cast<std::uint64_t>(socket.PeerProcess()) != asked->program.process_id) {
    if (own_area == nullptr) asked->program.area.Unmap();
    return absl::InvalidArgumentError(
        "the program counts its processes otherwise than its worker, in a container");
  }
  if (own_area == nullptr && !WorkerPlatform::MayObserve(asked->program.process_id)) {
    asked->program.area.Unmap();
    return absl::PermissionDeniedError(
        "the system lets a worker see nothing of this program, which is not dumpable");
  }
  asked->program.store = std::move(greeting.store);
  if (asked->tables_address == greeting.tables.address())
    asked->program.tables = std::move(greeting.tables);
  return asked;
}

// Tells the program why it is not served.
inline ServeEnd Refuse(const WorkerSocket& socket, const absl::Status& why) {
  static_cast<void>(socket.Send(AnswerOf(MessageKind::kWelcome, why)));
  return RefusalOf(why);
}

// Waits for the end of a program whose session has ended before it: the program would begin another
// worker if this one ended.
inline void AwaitEnd(const WorkerSocket& socket) {
  const absl::Status over = absl::FailedPreconditionError("the recording is over");
  while (true) {
    const absl::StatusOr<Message> message = socket.Receive(kEndCheckPeriodNs);
    if (absl::IsDeadlineExceeded(message.status()) && !WorkerPlatform::HasEnded()) continue;
    if (message.ok()) CloseDescriptors(*message);
    if (!message.ok() || message->kind == MessageKind::kStop) {
      const std::uint64_t number = message.ok() ? message->number : 0;
      static_cast<void>(socket.Send(AnswerOf(MessageKind::kStopped, absl::OkStatus(), number)));
      return;
    }
    static_cast<void>(socket.Send(AnswerOf(MessageKind::kFlushed, over, message->number)));
  }
}

// Serves the session until its end, or until that time.
template <class Traits>
ServeEnd ServeSession(const WorkerSocket& socket, WorkerSession<Traits>& session,
                      std::int64_t until_ns) {
  while (true) {
    const std::int64_t left_ns = until_ns - SystemClock().MonotonicNs();
    if (left_ns <= 0) {
      const absl::Status status = session.End([] { return "recorded for the time asked for"; });
      AwaitEnd(socket);
      return status.ok() ? ServeEnd::kServed : ServeEnd::kFailed;
    }
    const absl::StatusOr<Message> message = socket.Receive(std::min(kEndCheckPeriodNs, left_ns));
    session.UpdateRecordings();
    if (absl::IsDeadlineExceeded(message.status()) && !WorkerPlatform::HasEnded()) continue;
    if (message.ok() && message->kind == MessageKind::kRecord) {
      session.Record(*message);
      continue;
    }
    if (message.ok()) CloseDescriptors(*message);  // no other message has some
    if (message.ok() && message->kind == MessageKind::kFlush) {
      static_cast<void>(
          socket.Send(AnswerOf(MessageKind::kFlushed, session.Flush(), message->number)));
    } else {
      // The end of the program, however it ended, or what is no message: both end the session.
      const absl::Status status = session.End([&] { return EndBy(message); });
      const std::uint64_t number = message.ok() ? message->number : 0;
      static_cast<void>(socket.Send(AnswerOf(MessageKind::kStopped, status, number)));
      return status.ok() ? ServeEnd::kServed : ServeEnd::kFailed;
    }
  }
}

// Serves the program whose hello that is.
template <class Traits>
ServeEnd ServeGreeted(const WorkerSocket& socket, Greeting greeting, const SharedArea* own_area,
                      const Parts<Traits>& parts) {
  absl::StatusOr<AskedSession> asked = ReadGreeting<Traits>(socket, std::move(greeting), own_area);
  if (!asked.ok()) return Refuse(socket, asked.status());
  const SharedArea area = asked->program.area;
  const int signal = asked->program.signal;
  WorkerPlatform::Serve(std::move(asked->program));
  WorkerSession<Traits> session(asked->options, parts, area, signal, [&] { socket.EndWaits(); });
  // The program may have another worker by now.
  if (socket.HasEnded() || !WorkerPlatform::HasArea()) return ServeEnd::kFailed;
  const absl::Status begun = session.Begin();
  if (!socket.Send(AnswerOf(MessageKind::kWelcome, begun)).ok() || !begun.ok())
    return ServeEnd::kFailed;
  return ServeSession(
      socket, session,
      RecordingUntilNs(WorkerPlatform::EnvironmentVariable(kRecordingUntilVariable)));
}

// Serves the program at the other end until it stops or is gone: with the first of these traits
// that measure what the program does. For `own_area`, see Serve.
template <class... Traits>
ServeEnd ServeProgram(const WorkerSocket& socket, const SharedArea* own_area,
                      const Parts<Traits>&... parts) {
  absl::StatusOr<Greeting> greeting = ReceiveHello(socket, own_area);
  if (!greeting.ok()) return Refuse(socket, greeting.status());
  const absl::StatusOr<HelloText> hello = SplitMessage(greeting->hello, own_area);
  std::optional<ServeEnd> end;
  const auto serve = [&]<class T>(const Parts<T>& own_parts) {
    if (end || !hello.ok() || !HasValueTypes<T>(*hello)) return;
    end = ServeGreeted<T>(socket, *std::move(greeting), own_area, own_parts);
  };
  (serve.template operator()<Traits>(parts), ...);
  if (end) return *end;
  CloseDescriptors(greeting->hello);
  return Refuse(
      socket, hello.ok() ? absl::InvalidArgumentError("the program has other parts than its worker")
                         : hello.status());
}

}  // namespace internal
}  // namespace strobe
