// OutsideRecording: what of a recording loads no library, by perf events.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "profile/loaded_profile.h"
#include "record/record.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Programs that are not recorded, and why the first is not, which may be known before any program
// asks.
struct OutsideRefusal {
  std::string reason;
  std::uint64_t programs = 0;
};

// A process that executes such a program asks for it first (attach_request.h): then the program has
// perf events from its first instruction on, and so has all that it starts. Of what it starts, a
// process that loads the library samples itself, and is left out. There are no events until a
// process asks.
class OutsideRecording {
 public:
  // Listens in `folder`, which is open. `options` must outlive the recording. If the system refuses
  // that, nothing is recorded from outside.
  OutsideRecording(const RecordOptions& options, const std::string& folder);
  ~OutsideRecording();
  OutsideRecording(const OutsideRecording&) = delete;
  OutsideRecording& operator=(const OutsideRecording&) = delete;

  // Before Begin: records a child of this process, from its next exec on. Returns what forbids it.
  absl::Status AttachAtExec(std::uint32_t process);
  // Begins to answer, on a thread.
  void Begin();
  // Records a process that runs already, with what it has started.
  void Attach(std::uint32_t process);
  // Ends the recording. To be called before the last call of Take.
  void End();

  // What has been recorded since the last call; nothing if there is no sample.
  std::optional<LoadedProfile> Take();
  // The samples since the last call of Take.
  [[nodiscard]] std::uint64_t samples() const;
  // What has been refused since the last call.
  OutsideRefusal TakeRefusal();

 private:
  class Serving;

  std::unique_ptr<Serving> serving_;
};

}  // namespace internal
}  // namespace strobe
