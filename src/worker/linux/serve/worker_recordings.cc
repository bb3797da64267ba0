#include "strobe/worker/serve/worker_recordings.h"

#include <unistd.h>

#include <utility>

#include "strobe/base/memory_guard.h"
#include "strobe/core/stats.h"
#include "strobe/platform/refused_thread.h"

namespace strobe::internal {

void WorkerRecordings::Serve(Call& call) {
  // Without memory, the end of the connection is the answer.
  static_cast<void>(HasMemoryFor(
      [&] { static_cast<void>(SendProfile(call.socket, call.record(call.request))); }));
  call.is_done.store(true, std::memory_order_release);
}

void WorkerRecordings::Begin(const Message& message, const Record& record) {
  auto call = std::make_unique<Call>();
  call->socket = WorkerSocket(message.descriptors[0]);
  if (const WorkerSocket further(message.descriptors[1]); !call->socket.is_open()) return;
  absl::StatusOr<RecordingRequest> request = SplitRecording(message.text);
  Update();
  if (request.ok() && calls_.size() == kMaxRecordings) {
    request = absl::ResourceExhaustedError("as many recordings as allowed are under way");
  }
  if (!request.ok()) {
    static_cast<void>(SendProfile(call->socket, request.status()));
    return;
  }
  call->request = *std::move(request);
  call->request.options.cancelled = call->cancelled;
  call->record = record;
  calls_.reserve(calls_.size() + 1);
  call->thread =
      WorkerPlatform::RunOnOwnThread("strobe-record", [own = call.get()] { Serve(*own); });
  const absl::Status status = StatusOfThread("the recording", call->thread);
  if (status.ok()) {
    calls_.push_back(std::move(call));
  } else {
    static_cast<void>(SendProfile(call->socket, status));
  }
}

void WorkerRecordings::Update() {
  std::erase_if(calls_, [](const std::unique_ptr<Call>& call) {
    if (call->is_done.load(std::memory_order_acquire)) {
      call->thread.Join();
      return true;
    }
    const absl::StatusOr<Message> message = call->socket.Receive(0);
    if (!absl::IsDeadlineExceeded(message.status()))
      call->cancelled->store(true, std::memory_order_relaxed);
    return false;
  });
}

void WorkerRecordings::End() {
  for (const std::unique_ptr<Call>& call : calls_) call->thread.Join();
  calls_.clear();
}

}  // namespace strobe::internal
