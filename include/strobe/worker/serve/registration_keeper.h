// RegistrationKeeper: begins and ends the accounts of the threads whose registrations change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/thread_info.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/threads/thread_registry.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What a program may say of its clocks: about 36 years. So no difference of two overflows.
inline constexpr std::int64_t kMaxSharedClockNs = std::int64_t{1} << 60;

// In the worker; used by one thread at a time. A registration may hold anything: the program writes
// it. Traits::Platform is that of the worker.
template <class Traits>
class RegistrationKeeper {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // All arguments must outlive this object.
  RegistrationKeeper(const SharedArea& area, ThreadRegistry<Traits>& registry,
                     CollectorCounters& counters)
      : area_(area), registry_(registry), counters_(counters) {}

  // Updates the account of each registration that was announced since the last call. `session`
  // attaches and detaches the threads. What finds no memory is announced again.
  template <class Session>
  void Update(Session& session) {
    area_.VisitChanged([&](std::uint32_t index) {
      if (!counters_.HasMemoryFor([&] { Update(index, session); })) area_.Announce(index);
    });
  }

 private:
  // Of a registration's thread.
  struct Kept {
    Thread* thread = nullptr;  // while it is attached
    bool is_refused = false;   // and counted
  };

  template <class Session>
  void Update(std::uint32_t index, Session& session) {
    const SharedRegistration& shared = *area_.At(index);
    const SharedRegistrationState state = shared.state.load(std::memory_order_acquire);
    if (state == SharedRegistrationState::kFree) return;
    if (index >= kept_.size()) kept_.resize(index + 1);
    Kept& kept = kept_[index];
    if (kept.thread == nullptr) {
      const absl::Status begun = Begin(index, shared, session);
      // Its end was seen before it was announced, because that of its begin came late. The thread
      // gives the registration back when it has been drained.
      if (absl::IsFailedPrecondition(begun) && state == SharedRegistrationState::kLeft) return;
      if (!begun.ok() && !std::exchange(kept.is_refused, true)) registry_.CountRefused();
    }
    if (state != SharedRegistrationState::kLeft) return;
    if (kept.thread != nullptr) {
      End(*std::exchange(kept.thread, nullptr), shared, session);
    } else {
      Platform::GiveBack(index);
      kept = {};
    }
  }

  // The error of ThreadRegistry::Adopt.
  template <class Session>
  absl::Status Begin(std::uint32_t index, const SharedRegistration& shared, Session& session) {
    const std::string name(
        shared.name, std::min<std::size_t>(shared.name_bytes, SharedRegistration::kNameBytes));
    const absl::StatusOr<Thread*> thread =
        registry_.Adopt(index, SanitizedThreadName(name), ClockOf(shared.begin_ns));
    if (!thread.ok()) return thread.status();
    kept_[index] = {.thread = *thread};
    const std::uint64_t thread_id = (*thread)->thread_id();
    const std::int64_t since_cpu_ns = ClockOf(shared.since_cpu_ns);
    Platform::NoteThread(index, thread_id);
    Platform::NoteClock(thread_id, since_cpu_ns);
    // What the thread blocks shows when no request arrives (DeliveryCheck). One look would not do:
    // the C library blocks all signals while a thread begins another, and at a thread's end.
    session.Attach(**thread, {.monotonic_ns = ClockOf(shared.since_ns), .cpu_ns = since_cpu_ns});
    return absl::OkStatus();
  }

  template <class Session>
  void End(Thread& thread, const SharedRegistration& shared, Session& session) {
    Platform::NoteClock(thread.thread_id(), ClockOf(shared.end_cpu_ns));
    thread.is_ending.store(true, std::memory_order_release);
    session.Detach(thread);
    Platform::ForgetClock(thread.thread_id());
    registry_.Unregister(&thread);
  }

  // -1 is unknown.
  static std::int64_t ClockOf(std::int64_t clock_ns) {
    return std::clamp<std::int64_t>(clock_ns, -1, kMaxSharedClockNs);
  }

  const SharedArea& area_;
  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  std::vector<Kept> kept_;  // by registration
};

}  // namespace internal
}  // namespace strobe
