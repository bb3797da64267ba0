// LinuxSignalInbox: waits for a signal that comes from outside, by kill or from a terminal.
#pragma once

#include "absl/status/status.h"

namespace strobe {

// See SignalInbox. The handler only posts a semaphore, and runs on any thread of the program that
// does not block the signal. A fork's child keeps the handler, but no thread of the child waits for
// the semaphore: the signal does nothing there until the child opens an inbox for it.
class LinuxSignalInbox {
 public:
  LinuxSignalInbox() = default;
  ~LinuxSignalInbox();
  LinuxSignalInbox(const LinuxSignalInbox&) = delete;
  LinuxSignalInbox& operator=(const LinuxSignalInbox&) = delete;

  absl::Status Open(int signal);
  bool Wait() const;
  void Close() const;

 private:
  int signal_ = 0;  // 0 if it is not open
};

}  // namespace strobe
