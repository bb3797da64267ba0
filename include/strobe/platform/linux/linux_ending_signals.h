// LinuxEndingSignals: delays the signals that end the process until a session is exported.
#pragma once

#include <cstdint>

namespace strobe {

// See EndingSignals. The signals are SIGHUP, SIGINT and SIGTERM. The handler posts a semaphore, and
// keeps its thread, so that the program does not go on with what the signal has interrupted. A
// fork's child keeps the handler, which ends it at once there.
class LinuxEndingSignals {
 public:
  // Signals within this time are one request to end: a shell, `timeout` and `strobe record` may
  // each pass on what the terminal has sent already.
  static constexpr std::int64_t kSameRequestNs = 1'000'000'000;

  LinuxEndingSignals() = default;
  ~LinuxEndingSignals() { GiveBack(); }
  LinuxEndingSignals(const LinuxEndingSignals&) = delete;
  LinuxEndingSignals& operator=(const LinuxEndingSignals&) = delete;

  bool Take(std::int64_t patience_ns);
  bool Await() const;
  void EndProcess() const;
  void Close() const;
  void GiveBack();

 private:
  bool has_taken_ = false;
};

}  // namespace strobe
