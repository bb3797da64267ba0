// WorkerRecordings: the recordings on demand that a worker makes for its program.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/worker/serve/worker_platform.h"
#include "strobe/worker/shared/handshake.h"
#include "strobe/worker/shared/recording_messages.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Used by one thread. Each recording waits on a thread of its own.
class WorkerRecordings {
 public:
  // Does what a program asks for; called on several threads at once.
  using Record = std::function<absl::StatusOr<Profile>(const RecordingRequest&)>;

  WorkerRecordings() = default;
  WorkerRecordings(const WorkerRecordings&) = delete;
  WorkerRecordings& operator=(const WorkerRecordings&) = delete;
  // Waits for the recordings, as End.
  ~WorkerRecordings() { End(); }

  // Begins the recording that the message asks for, if it is one. The answer goes to the end of a
  // connection that comes with it.
  void Begin(const Message& message, const Record& record);
  // Cancels recordings whose callers want that or are gone, and forgets those that are done.
  void Update();
  // Waits for all recordings: what ends them is the end of their session.
  void End();

 private:
  struct Call {
    WorkerSocket socket;
    RecordingRequest request;
    Record record;
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
    std::atomic<bool> is_done{false};
    WorkerPlatform::OwnThread thread;
  };
  static void Serve(Call& call);

  std::vector<std::unique_ptr<Call>> calls_;
};

}  // namespace internal
}  // namespace strobe
