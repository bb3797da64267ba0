// LinuxThreadProbe: observes a thread of this process from outside, by its CPU clock and by the
// kernel's files in /proc/self/task. The thread is not disturbed.
#pragma once

#include <cstdint>

#include "strobe/base/visibility.h"
#include "strobe/core/thread_info.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A file of a thread in /proc/self/task, or of a thread of the process that ObserveProcess has
// named. It stays open for the next read, as long as no more than
// kMaxKeptFiles, and no more than an eighth of the process's limit, are kept in all, and as the
// program does not close it.
class LinuxThreadFile {
 public:
  static constexpr int kMaxKeptFiles = 1024;

  // In place of a thread's id: the thread that calls, whatever process is observed. Only that
  // thread may use the object.
  static constexpr std::uint64_t kCallingThread = 0;

  // From now on the files that the calling thread opens are of that process's threads.
  static void ObserveProcess(std::uint64_t process_id);

  LinuxThreadFile() = default;
  LinuxThreadFile(LinuxThreadFile&& other) noexcept;
  LinuxThreadFile& operator=(LinuxThreadFile&& other) noexcept;
  ~LinuxThreadFile();

  // Reads the start of /proc/self/task/<thread_id>/<name> into `text`, and ends it with a zero.
  // False if there is no such file, or no such thread any more.
  template <std::size_t kBytes>
  bool Read(std::uint64_t thread_id, const char* name, char (&text)[kBytes]) {
    return ReadStart(thread_id, name, text, kBytes);
  }

 private:
  bool ReadStart(std::uint64_t thread_id, const char* name, char* text, std::size_t bytes);
  void Close();

  int kept_ = -1;  // its handle; -1 if it is not kept
};

// The instant at which the calling thread woke from its wait: construct it then.
class LinuxInstant {
 public:
  LinuxInstant();

  // When the scheduler gave the calling thread its CPU, by the scheduler's clock; -1 if unknown.
  [[nodiscard]] std::int64_t scheduled_ns() const;

 private:
  static constexpr std::int64_t kUnread = -2;
  mutable std::int64_t scheduled_ns_ = kUnread;
};

// Used by one thread at a time.
class LinuxThreadProbe {
 public:
  explicit LinuxThreadProbe(std::uint64_t thread_id) : thread_id_(thread_id) {}

  // See Platform::ThreadProbe.
  [[nodiscard]] std::int64_t CpuTimeNs() const;
  ThreadPoll Poll();
  bool WasDisplaced(const LinuxInstant& instant);
  ThreadActivity Observe();
  [[nodiscard]] std::int64_t seen_cpu_ns() const { return seen_cpu_ns_; }
  int LastCpu();
  bool YieldsAtOnce();
  std::int64_t WaitCount();
  bool BlocksSignal(int signal);

 private:
  bool IsReady();

  std::uint64_t thread_id_;
  std::int64_t seen_cpu_ns_ = -1;  // the CPU clock at the last look
  LinuxThreadFile syscall_;
  LinuxThreadFile stat_;
  LinuxThreadFile sched_;
};

}  // namespace internal
}  // namespace strobe
