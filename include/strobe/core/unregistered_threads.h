// UnregisteredThreads: how much of a process's CPU time no registered thread has used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace strobe {

struct UnregisteredThreads {
  // A smaller share is not worth a word: a thread runs before it registers.
  static constexpr double kLeastShare = 0.1;
  static constexpr std::size_t kMaxNames = 3;

  // Of the process's CPU time, without that of the profiler's threads: from 0 to 1. 0 if it is less
  // than kLeastShare, and if the system does not tell.
  double share = 0;
  std::uint64_t count = 0;  // of the threads that live now
  std::string names = {};   // of those that have used the most CPU time: "worker-1, worker-2, ..."

  friend bool operator==(const UnregisteredThreads&, const UnregisteredThreads&) = default;
};

namespace internal {

// "83 % of the process's CPU time in this period was in threads that are not registered (5 threads:
// worker-1, ...)", where `when` is "in this period". Empty without a share.
std::string TextOf(const UnregisteredThreads& unregistered, const std::string& when);

}  // namespace internal
}  // namespace strobe
