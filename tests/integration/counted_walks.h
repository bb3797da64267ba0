// How often a thread's stack has been walked, for tests that work until they have been sampled:
// however rarely a loaded machine lets a timer expire or a thread be stopped, what comes after can
// rely on it.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>

#include "platform/test_system.h"
#include "strobe/own_parts.h"
#include "support/until_seen.h"

namespace strobe::testing {

// Walks that this thread has done, interrupted or else.
inline constinit thread_local std::atomic<int> walks_by_this_thread{0};

// The system's platform. If threads are stopped and other threads walk their stacks, it counts the
// stops of each thread.
class CountingPlatform : public NativePlatform {
 public:
  static bool Interrupt(std::uint64_t thread_id, std::uint64_t payload, int signal,
                        bool was_running) {
    if (!NativePlatform::Interrupt(thread_id, payload, signal, was_running)) return false;
    if (kCopiesStacks) Count(thread_id, 1);
    return true;
  }
  // Adds to a thread's stops, and returns how many there are.
  static int Count(std::uint64_t thread_id, int stops) {
    static auto* const mutex = new std::mutex;
    static auto* const stops_of = new std::map<std::uint64_t, int>;
    const std::lock_guard lock(*mutex);
    return (*stops_of)[thread_id] += stops;
  }
};
static_assert(Platform<CountingPlatform>);

// Walks of this thread's stack, by any unwinder.
inline int WalksOfThisThread() {
  if (NativePlatform::kCopiesStacks)
    return CountingPlatform::Count(NativePlatform::CurrentThreadId(), 0);
  return walks_by_this_thread.load(std::memory_order_relaxed);
}

// Another, which also counts.
template <class Base>
class CountingUnwinder : public Base {
 public:
  using Base::Base;
  template <class... Arguments>
  requires requires(const Base& base, Arguments&&... arguments) { base.Unwind(arguments...); }
  WalkResult Unwind(Arguments&&... arguments) const noexcept {
    walks_by_this_thread.fetch_add(1, std::memory_order_relaxed);
    return Base::Unwind(arguments...);
  }
};
static_assert(Unwinder<CountingUnwinder<DefaultTraits::Unwinder>>);

// Whether the calling thread has been sampled often enough since this was made; at the latest, when
// it has used kPatienceNs of CPU time. A walk that lacked a table need not have become a sample:
// see DropReason::kNoTable. A test that needs one in a profile looks there.
class EnoughWalks {
 public:
  explicit EnoughWalks(int wanted) : wanted_(WalksOfThisThread() + wanted) {}
  explicit operator bool() const {
    return WalksOfThisThread() >= wanted_ || ThreadCpuNs() >= end_ns_;
  }

 private:
  const int wanted_;
  const std::int64_t end_ns_ = ThreadCpuNs() + kPatienceNs;
};

}  // namespace strobe::testing
