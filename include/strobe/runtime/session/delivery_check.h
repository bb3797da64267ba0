// DeliveryCheck: checks that signals reach the threads that are due samples.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/platform/platform.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/threads/signal_mask.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The collector runs it once a second. Checks the signal mask of the threads that are due samples
// but have got none since the last check, and of the threads that blocked the signal. If a thread
// has begun or ceased to block the signal, its account is settled and the thread is attached anew.
template <class Traits, class Session>
class DeliveryCheck {
 public:
  using Thread = typename Session::Thread;
  using Platform = typename Traits::Platform;
  // The most threads in one check. The next check continues with the others.
  static constexpr std::size_t kMaxThreads = 64;
  // A sample is due after this much CPU time without one: both kDueNs and kDuePeriods periods. The
  // kernel's ticks may be rarer than periods.
  static constexpr std::int64_t kDueNs = 100'000'000;
  static constexpr std::int64_t kDuePeriods = 4;
  // A change of the mask counts if this many checks in a row see it: our own handler and a fork
  // block signals for a moment.
  static constexpr int kChecks = 2;

  DeliveryCheck(Session& session, ThreadRegistry<Traits>& registry, CollectorCounters& counters,
                SignalInUse& signal)
      : session_(session), registry_(registry), counters_(counters), signal_(signal) {}

  void Run() {
    const bool is_failing = CheckThreads();
    if (has_blocking_ && !std::exchange(signal_.is_blocking_said, true)) SayBlocking();
    const bool is_replaced = Platform::HandlerStateOf(session_.signal()) == HandlerState::kReplaced;
    signal_.is_failing.store(
        is_replaced && (is_failing || signal_.is_failing.load(std::memory_order_relaxed)),
        std::memory_order_relaxed);
    signal_.is_replacement_said &= is_replaced;
    // If samples come all the same, the new handler calls ours, as the handler of another copy of
    // this library does.
    if (!is_replaced || !is_failing || std::exchange(signal_.is_replacement_said, true)) return;
    const std::string line = "strobe: the program has replaced the handler of signal " +
                             std::to_string(session_.signal());
    const int other = signal_.Wanted<Platform>();
    if (other != session_.signal() && Platform::InstallHandler(other).ok()) {
      Platform::WriteLine(line + "; threads are interrupted by signal " + std::to_string(other) +
                          " from now on");
      MoveTo(other);
    } else {
      Platform::WriteLine(line +
                          "; no sample arrives unless the new handler calls the previous one");
    }
    counters_.handler_replaced.fetch_add(1, std::memory_order_relaxed);
  }

 private:
  // True if a thread that does not block the signal is due samples and has got none.
  bool CheckThreads() {
    bool is_failing = false;
    registry_.CopyLive(threads_);
    const std::size_t count = std::min(threads_.size(), kMaxThreads);
    for (std::size_t i = 0; i < count; ++i) {
      Thread& thread = *threads_[(first_ + i) % threads_.size()];
      bool has_changed = false;
      is_failing |= IsFailing(thread, has_changed);
      if (has_changed) session_.Reattach(thread);
    }
    first_ += count;
    return is_failing;
  }

  // Switches to another signal.
  void MoveTo(int signal) {
    session_.set_signal(signal);
    registry_.CopyLive(threads_);
    for (Thread* thread : threads_) session_.Reattach(*thread);
    seen_.clear();
    signal_.number.store(signal, std::memory_order_relaxed);
    signal_.is_failing.store(false, std::memory_order_relaxed);
    signal_.is_replacement_said = false;
  }

  void SayBlocking() {
    Stats stats;
    registry_.AddTo(stats);
    Platform::WriteLine("strobe: " + BlockingThreads(stats.threads_blocking, session_.signal()));
  }

  // What the last check saw of a thread.
  struct Seen {
    std::uint16_t use = 0;
    std::uint32_t captures = 0;
    std::int64_t cpu_ns = -1;  // less than 0 if a sample came since the previous check
    bool is_requested = false;
    int changed_checks = 0;
  };

  bool IsFailing(Thread& thread, bool& has_changed) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (!thread.is_attached) return false;
    if (thread.index() >= seen_.size()) seen_.resize(thread.index() + 1);
    Seen& seen = seen_[thread.index()];
    if (seen.use != thread.channel->token.use) seen = {.use = thread.channel->token.use};
    const bool was_blocked = thread.blocks_signal.load(std::memory_order_relaxed);
    has_blocking_ |= was_blocked;
    if (!was_blocked && !IsDue(thread, seen)) {
      seen.changed_checks = 0;
      return false;
    }
    const std::uint64_t blocked_signals = BlockedSignals(thread);
    const bool is_blocked = HasSignal(blocked_signals, session_.signal());
    seen.changed_checks = is_blocked != was_blocked ? seen.changed_checks + 1 : 0;
    if (seen.changed_checks == kChecks) {
      thread.blocked_signals = blocked_signals;
      has_changed = true;
    }
    return !is_blocked && !was_blocked;
  }

  // True if samples should have come since the last check. Reads the thread's clock only if none
  // came.
  bool IsDue(Thread& thread, Seen& seen) {
    const std::uint32_t captures =
        thread.channel->counters.captures.load(std::memory_order_relaxed);
    const bool was_requested = seen.is_requested;
    seen.is_requested = Thread::IsAwaited(thread);
    if (captures != seen.captures) {
      seen.captures = captures;
      seen.cpu_ns = -1;
      return false;
    }
    if (was_requested && seen.is_requested) return true;
    const std::int64_t cpu_ns = Platform::ThreadCpuTimeNs(thread.thread_id());
    if (seen.cpu_ns < 0) seen.cpu_ns = cpu_ns;
    return thread.timer_kind.load(std::memory_order_relaxed) != TimerKind::kNone &&
           session_.period_ns() > 0 &&
           cpu_ns - seen.cpu_ns >= std::max(kDueNs, kDuePeriods * session_.period_ns());
  }

  static std::uint64_t BlockedSignals(const Thread& thread) {
    if constexpr (KnowsBlockedSignals<Platform>)
      return Platform::BlockedSignals(thread.thread_id());
    return 0;
  }

  Session& session_;
  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  SignalInUse& signal_;
  std::vector<Thread*> threads_;  // scratch
  std::size_t first_ = 0;
  std::vector<Seen> seen_;     // by the thread's index
  bool has_blocking_ = false;  // some thread has blocked the signal
};

}  // namespace internal
}  // namespace strobe
