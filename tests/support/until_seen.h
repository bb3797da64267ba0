// What a test must see on real time, it awaits: it works, or waits, until it has been seen. A
// machine that is loaded, or that takes its CPUs away, makes that later, and never makes it fail.
//
//   WorkUntil([&] { return profiler.stats().samples > 0; }, [] { BurnCpu(1'000'000); });
//
// Each loop is bounded by what the calling thread has done itself, because the system may not run
// it for any time. The bounds only guard against hanging: what has not come by then never comes.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "support/caller.h"

namespace strobe::testing {

// The most CPU time of a thread that works until something has been seen.
inline constexpr std::int64_t kPatienceNs = 60'000'000'000;
// The most times that a thread that waits looks for it, a millisecond or more apart.
inline constexpr int kPatienceLooks = 60'000;

// Calls work() until seen() holds. Returns false, and fails the test, if it does not hold by then.
template <std::int64_t kMostNs = kPatienceNs, class Seen, class Work>
bool WorkUntil(Seen&& seen, Work&& work, Caller where = Caller::Here()) {
  const std::int64_t end_ns = ThreadCpuNs() + kMostNs;
  while (!seen()) {
    if (ThreadCpuNs() > end_ns) {
      ADD_FAILURE_AT(where.file, where.line)
          << "not seen within " << kMostNs / 1e9 << " s of the thread's CPU time";
      return false;
    }
    work();
  }
  return true;
}

// Sleeps until seen() holds. Returns false, and fails the test, if it does not hold by then.
template <int kMostLooks = kPatienceLooks, class Seen>
bool WaitUntil(Seen&& seen, Caller where = Caller::Here()) {
  for (int looks = 0; !seen(); ++looks) {
    if (looks == kMostLooks) {
      ADD_FAILURE_AT(where.file, where.line) << "not seen in " << kMostLooks << " looks";
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace strobe::testing
