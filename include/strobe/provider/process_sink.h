// ProcessSink: where a library that sees events of the whole process (allocations, contended locks,
// exceptions) takes them: to one profiler at a time.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/provider/event_target.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A constant-initialized global. Closed at first. Open and Close: control plane, any thread. The
// rest is signal-safe.
class ProcessSink {
 public:
  // How long Close and Pause wait for the threads that use the sink. One that takes longer is
  // stopped by a debugger, or was left behind by a fork.
  static constexpr std::chrono::milliseconds kUsersWait{100};

  constexpr ProcessSink() = default;
  ProcessSink(const ProcessSink&) = delete;
  ProcessSink& operator=(const ProcessSink&) = delete;

  // From now on events go to `target`, which is not copied. Calls prepare() before, while no thread
  // uses the sink, and counts untaken amounts from 0. Returns false, and does nothing, if the sink
  // is open.
  template <class Prepare>
  [[nodiscard]] bool Open(const EventTarget& target, const Prepare& prepare) {
    if (is_owned_.exchange(true, std::memory_order_acquire)) return false;
    prepare();
    untaken_.Clear();
    target_.store(&target, std::memory_order_seq_cst);
    return true;
  }

  // From now on events go nowhere. Waits until no thread uses the target any more. The sink is
  // open.
  void Close() {
    target_.store(nullptr, std::memory_order_seq_cst);
    AwaitUsers();
    is_owned_.store(false, std::memory_order_release);
  }

  // Calls change() while events go nowhere, and no thread that takes one uses the sink. Not beside
  // an Open or a Close.
  template <class Change>
  void Pause(const Change& change) {
    const EventTarget* const target = target_.exchange(nullptr, std::memory_order_seq_cst);
    AwaitUsers();
    change();
    target_.store(target, std::memory_order_seq_cst);
  }

  // Waits until no thread uses the sink, at most kUsersWait.
  void AwaitUsers() const {
    const auto deadline = std::chrono::steady_clock::now() + kUsersWait;
    while (users_.load(std::memory_order_seq_cst) != 0 &&
           std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }

  [[nodiscard]] bool is_open() const noexcept {
    return target_.load(std::memory_order_relaxed) != nullptr;
  }

  // What Record was given since Open and is in no profile: events from before and after a session.
  [[nodiscard]] SampledAmounts untaken() const { return untaken_.Get(); }

  // A thread that uses the sink, which stays as it is meanwhile.
  class Use {
   public:
    STROBE_ALWAYS_INLINE explicit Use(ProcessSink& sink) noexcept : sink_(sink) {
      sink_.users_.fetch_add(1, std::memory_order_seq_cst);
      target_ = sink_.target_.load(std::memory_order_seq_cst);
    }
    STROBE_ALWAYS_INLINE ~Use() { sink_.users_.fetch_sub(1, std::memory_order_release); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    // Records an event with the stack of the calling function. False if no profile will have the
    // event. Adds no frame to the stack but that of the target's function.
    STROBE_ALWAYS_INLINE bool Record(const SampledAmounts& amounts,
                                     StackKeeper* keeper = nullptr) const noexcept {
      if (target_ == nullptr) return false;
      const bool is_taken = target_->record(target_->profiler, amounts, keeper);
      if (!is_taken) sink_.untaken_.Add(amounts);
      return is_taken;
    }

   private:
    ProcessSink& sink_;
    const EventTarget* target_ = nullptr;
  };

 private:
  std::atomic<bool> is_owned_{false};
  std::atomic<const EventTarget*> target_{nullptr};
  std::atomic<int> users_{0};
  AmountsSum untaken_;
};

}  // namespace internal
}  // namespace strobe
