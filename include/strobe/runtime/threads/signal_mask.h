// SignalInUse: the signal that a profiler interrupts threads by. And the mask of a thread that
// registers itself, which may block it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/platform/signal_set.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The signal that a Profiler interrupts threads by.
struct SignalInUse {
  const int requested = 0;     // by the options; 0 for the default
  std::atomic<int> number{0};  // of the last session
  std::atomic<bool> is_failing{
      false};  // its handler was replaced, and samples that are due do not come

  // Used by the collector only: whether the message has been written to standard error.
  bool is_replacement_said = false;
  bool is_blocking_said = false;

  template <class Platform>
  [[nodiscard]] int Wanted() const {
    return requested != 0 ? requested : Platform::DefaultSignal();
  }
};

template <class Platform>
concept KnowsBlockedSignals = requires(std::uint64_t thread_id, int signal) {
  Platform::BlockedSignals(thread_id);
  Platform::SetSignalBlocked(signal, true);
};

// Called on the thread that registers itself. Notes which signals the thread blocks, and unblocks
// our signal if `may_unblock`.
template <class Platform, class Thread>
void CheckMask(Thread& thread, const SignalInUse& in_use, bool may_unblock) {
  if constexpr (KnowsBlockedSignals<Platform>) {
    thread.blocked_signals = Platform::BlockedSignals(thread.thread_id());
    if (thread.blocked_signals == 0 || !may_unblock) return;
    const int number = in_use.number.load(std::memory_order_relaxed);
    const int signal = number != 0 ? number : in_use.Wanted<Platform>();
    if (!HasSignal(thread.blocked_signals, signal)) return;
    Platform::SetSignalBlocked(signal, false);
    thread.unblocked_signal = static_cast<std::uint8_t>(signal) & 0x7F;  // at most 64
    thread.blocked_signals &= ~BitOf(signal);
  }
}
// Blocks the signal again if CheckMask has unblocked it.
template <class Platform, class Thread>
void RestoreMask(Thread& thread) {
  if constexpr (KnowsBlockedSignals<Platform>) {
    if (thread.unblocked_signal != 0) Platform::SetSignalBlocked(thread.unblocked_signal, true);
    thread.unblocked_signal = 0;
  }
}

// The message about `count` threads that block `signal`.
std::string BlockingThreads(std::uint64_t count, int signal);

}  // namespace internal
}  // namespace strobe
