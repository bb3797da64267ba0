// UnregisteredCheck: how much of the process's CPU time no registered thread has used.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/thread_info.h"
#include "strobe/core/unregistered_threads.h"
#include "strobe/runtime/drain/collector_counters.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Less CPU time in a period is not worth a word: the clocks of other processes' threads may be late
// by a tick each. Clocks that advance by ticks alone are late in every process, once for a thread's
// user time and once for its system time: here half a dozen threads may be.
template <class Platform>
inline constexpr std::int64_t kLeastUnregisteredNs =
    Platform::kHasFineCpuClocks ? 50'000'000 : 200'000'000;

// Those of `threads` that are not in `registered`, and the share that they have of the CPU clocks
// of all, however small. `name_of` returns a thread's name.
UnregisteredThreads DescribeUnregistered(
    std::vector<ProgramThread> threads, std::vector<std::uint64_t> registered,
    const std::function<std::string(std::uint64_t thread_id)>& name_of);

template <class Platform>
UnregisteredThreads DescribeUnregistered(std::vector<std::uint64_t> registered) {
  return DescribeUnregistered(Platform::ProgramThreads(), std::move(registered),
                              &Platform::ThreadName);
}

// By all that the threads that live now have used since their begin. Any thread may call it. Lists
// the process's threads.
template <class Platform>
UnregisteredThreads FindUnregistered(std::vector<std::uint64_t> registered) {
  UnregisteredThreads found = DescribeUnregistered<Platform>(std::move(registered));
  return found.share < UnregisteredThreads::kLeastShare ? UnregisteredThreads() : found;
}

// By what the process has used in a period, also in threads that have ended. Lists the threads only
// if some of them are worth a word.
template <class Platform>
class UnregisteredCheck {
 public:
  // The first period begins.
  explicit UnregisteredCheck(const CollectorCounters& counters)
      : counters_(counters), begin_(ReadClocks()) {}

  // The period ends, and the next begins. Call it when the accounts of all threads have just been
  // settled.
  UnregisteredThreads EndPeriod(std::vector<std::uint64_t> registered) {
    const Clocks end = ReadClocks();
    const Clocks begin = std::exchange(begin_, end);
    if (begin.process_ns < 0 || end.process_ns < 0) return {};
    const std::int64_t program_ns = end.process_ns - begin.process_ns - (end.own_ns - begin.own_ns);
    const std::int64_t others_ns = program_ns - (end.registered_ns - begin.registered_ns);
    if (others_ns < kLeastUnregisteredNs<Platform>) return {};
    const double share = static_cast<double>(others_ns) / static_cast<double>(program_ns);
    if (share < UnregisteredThreads::kLeastShare) return {};
    UnregisteredThreads found = DescribeUnregistered<Platform>(std::move(registered));
    found.share = share;
    return found;
  }

 private:
  struct Clocks {
    std::int64_t process_ns;     // -1 if the system does not tell
    std::int64_t own_ns;         // of it, the profiler's threads
    std::int64_t registered_ns;  // of it, registered threads
  };

  [[nodiscard]] Clocks ReadClocks() const {
    return {.process_ns = Platform::ProcessCpuTimeNs(),
            .own_ns = Platform::OwnCpuTimeNs(),
            .registered_ns = counters_.registered_cpu_ns.load(std::memory_order_relaxed)};
  }

  const CollectorCounters& counters_;
  Clocks begin_;
};

}  // namespace internal
}  // namespace strobe
