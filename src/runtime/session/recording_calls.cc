#include "strobe/runtime/session/recording_calls.h"

#include <algorithm>

namespace strobe::internal {

bool RecordingCalls::Wait(const std::shared_ptr<RecordingCall>& call) {
  const std::lock_guard lock(monitor_);
  if (is_closed_) {
    call->status = NotRunning();
    return true;
  }
  if (calls_.size() >= kMaxRecordings) {
    call->status = MakeStatus(absl::StatusCode::kResourceExhausted,
                              "the most recordings at a time are under way already");
    return true;
  }
  calls_.push_back(call);
  monitor_.NotifyAll();
  const auto is_done = [&] { return call->is_done; };
  if (!call->deadline) {
    monitor_.WaitFor(is_done);
  } else if (!monitor_.WaitFor(is_done, *call->deadline)) {
    std::erase(calls_, call);
    return false;
  }
  return true;
}

std::int64_t RecordingCalls::due_ns() const {
  std::int64_t due_ns = INT64_MAX;
  for (const auto& call : calls_) due_ns = std::min(due_ns, DueNs(*call));
  return due_ns;
}

RecordingCalls::Calls RecordingCalls::Due(std::int64_t now_ns) const {
  Calls due;
  std::ranges::copy_if(calls_, due.begin(),
                       [&](const auto& call) { return DueNs(*call) <= now_ns; });
  return due;
}

void RecordingCalls::Finish(const std::shared_ptr<RecordingCall>& call) {
  const std::lock_guard lock(monitor_);
  std::erase(calls_, call);
  call->is_done = true;
  monitor_.NotifyAll();
}

}  // namespace strobe::internal
