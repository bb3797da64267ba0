// RecordingWorker: one worker for all programs of a recording, in threads of this process.
#pragma once

#include <memory>
#include <string>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class RecordingWorker {
 public:
  // From now on programs may connect to a socket in that folder, and wait there. Without a folder
  // there is no worker.
  explicit RecordingWorker(const std::string& folder);
  ~RecordingWorker();
  RecordingWorker(const RecordingWorker&) = delete;
  RecordingWorker& operator=(const RecordingWorker&) = delete;

  // Empty if the system refuses it: each program then has a worker of its own.
  [[nodiscard]] const std::string& path() const { return path_; }

  // Begins to serve them. This process has more threads and, in memory, names from now on.
  void Begin();
  // Ends the sessions, and waits for them: they export what their programs have left.
  void End();

 private:
  struct Listening;

  std::string path_;
  std::unique_ptr<Listening> listening_;
};

}  // namespace internal
}  // namespace strobe
