// The threads of RunOnOwnThread, on every system: their CPU time is not the program's.
#pragma once

#include <cstdint>

namespace strobe::internal {

// Reads the CPU clock of a thread of this process; -1 if there is none.
using ReadThreadClock = std::int64_t (*)(std::uint64_t thread_id);

// Marks the calling thread as long as it lives. At most kMaxOwnThreads threads are marked at a
// time. `forks` is the ForkCount of the process: its parent's threads do not exist in it.
class OwnThreadMark {
 public:
  OwnThreadMark(std::uint64_t thread_id, std::uint64_t forks, ReadThreadClock read_clock);
  ~OwnThreadMark();
  OwnThreadMark(const OwnThreadMark&) = delete;
  OwnThreadMark& operator=(const OwnThreadMark&) = delete;

 private:
  const std::uint64_t thread_id_;
  const ReadThreadClock read_clock_;
  std::uint64_t mark_;
};

inline constexpr int kMaxOwnThreads = 64;

// Says, while it lives, that the calling thread begins such a thread. Who interposes the system's
// function for that leaves the new thread alone.
class OwnThreadBegin {
 public:
  OwnThreadBegin() { is_under_way_ = true; }
  ~OwnThreadBegin() { is_under_way_ = false; }
  OwnThreadBegin(const OwnThreadBegin&) = delete;
  OwnThreadBegin& operator=(const OwnThreadBegin&) = delete;

  [[nodiscard]] static bool IsUnderWay() { return is_under_way_; }

 private:
  static constinit inline thread_local bool is_under_way_ = false;
};

[[nodiscard]] bool IsOwnThread(std::uint64_t thread_id, std::uint64_t forks);
// True on such a thread.
template <class Platform>
[[nodiscard]] bool IsOnOwnThread() {
  return IsOwnThread(Platform::CurrentThreadId(), Platform::ForkCount());
}
// Of all marked threads, also of those that have ended, in this process and its parents.
[[nodiscard]] std::int64_t OwnThreadsCpuTimeNs(std::uint64_t forks, ReadThreadClock read_clock);

}  // namespace strobe::internal
