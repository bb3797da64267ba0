// CurrentSession: the session that runs now, if there is one, and what is left of earlier ones.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/control/diagnosis.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/session/ended_exports.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe, and never blocked while a session begins or ends: a thread that registers, or that
// asks for statistics, does not wait for an export. Set and Clear are called one at a time.
template <class Running>
class CurrentSession {
 public:
  using Pointer = std::shared_ptr<Running>;

  explicit CurrentSession(CollectorCounters& counters) : ended_exports_(counters) {}

  // The session that runs, or nullptr. A caller may use it until after its end.
  [[nodiscard]] Pointer Get() const {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  // Takes no lock.
  [[nodiscard]] bool IsRunning() const { return is_running_.load(std::memory_order_relaxed); }

  // Makes room for what a further session leaves. ResourceExhausted if too many exporters hang.
  absl::Status MakeRoom() {
    const std::lock_guard lock(mutex_);
    return ended_exports_.MakeRoom();
  }
  // From now on `running` is the session that runs. Requires MakeRoom.
  void Set(Pointer running) {
    const std::lock_guard lock(mutex_);
    running_ = std::move(running);
    is_running_.store(true, std::memory_order_relaxed);
  }
  // The session that runs has ended. Keeps its export worker while that hangs, and its account.
  void Clear() {
    const std::lock_guard lock(mutex_);
    ended_exports_.Add(running_->worker());
    running_ = nullptr;
    is_running_.store(false, std::memory_order_relaxed);
  }

  // Notes what a Start has returned.
  void NoteStart(const absl::Status& status) {
    const std::lock_guard lock(mutex_);
    was_started_ = true;
    last_start_ = status;
  }

  // Adds the exports of all sessions.
  void AddExportsTo(Stats& stats) const {
    const std::lock_guard lock(mutex_);
    ended_exports_.AddTo(stats);
    if (running_ != nullptr) AddExportsOf(*running_->worker(), stats);
  }
  // Adds whether a session runs, and how the last Start went.
  void AddTo(DiagnosisFacts& facts) const {
    const std::lock_guard lock(mutex_);
    facts.last_start = last_start_;
    facts.was_started = was_started_;
    facts.is_running = running_ != nullptr;
  }

 private:
  mutable std::mutex mutex_;  // never locked during a wait
  Pointer running_;
  std::atomic<bool> is_running_{false};
  absl::Status last_start_;
  bool was_started_ = false;
  EndedExports<typename Running::Worker> ended_exports_;
};

}  // namespace internal
}  // namespace strobe
