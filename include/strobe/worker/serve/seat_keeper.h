// SeatKeeper: begins and ends the accounts of the threads whose seats change.
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

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What a program may say of its clocks: about 36 years. So no difference of two overflows.
inline constexpr std::int64_t kMaxSeatClockNs = std::int64_t{1} << 60;

// In the worker; used by one thread at a time. A seat may hold anything: the program writes it.
// Traits::Platform is that of the worker.
template <class Traits>
class SeatKeeper {
 public:
  using Slot = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // All arguments must outlive this object.
  SeatKeeper(const SharedArea& area, ThreadRegistry<Traits>& registry, CollectorCounters& counters)
      : area_(area), registry_(registry), counters_(counters) {}

  // Sees to each seat that was announced since the last call. `session` attaches and detaches the
  // threads. What finds no memory is announced again.
  template <class Session>
  void See(Session& session) {
    area_.VisitChanged([&](std::uint32_t index) {
      if (!counters_.HasMemoryFor([&] { SeeTo(index, session); })) area_.Announce(index);
    });
  }

 private:
  // Of a seat's thread.
  struct Kept {
    Slot* slot = nullptr;     // while it is attached
    bool is_refused = false;  // and counted
  };

  template <class Session>
  void SeeTo(std::uint32_t index, Session& session) {
    const Seat& seat = *area_.At(index);
    const SeatState state = seat.state.load(std::memory_order_acquire);
    if (state == SeatState::kFree) return;
    if (index >= kept_.size()) kept_.resize(index + 1);
    Kept& kept = kept_[index];
    if (kept.slot == nullptr) {
      const absl::Status begun = Begin(index, seat, session);
      // Its end was seen before it was announced, because that of its begin came late. The slot
      // gives the seat back when it has been drained.
      if (absl::IsFailedPrecondition(begun) && state == SeatState::kLeft) return;
      if (!begun.ok() && !std::exchange(kept.is_refused, true)) registry_.CountRefused();
    }
    if (state != SeatState::kLeft) return;
    if (kept.slot != nullptr) {
      End(*std::exchange(kept.slot, nullptr), seat, session);
    } else {
      Platform::GiveBack(index);
      kept = {};
    }
  }

  // The error of ThreadRegistry::Adopt.
  template <class Session>
  absl::Status Begin(std::uint32_t index, const Seat& seat, Session& session) {
    const std::string name(seat.name, std::min<std::size_t>(seat.name_bytes, Seat::kNameBytes));
    const absl::StatusOr<Slot*> slot =
        registry_.Adopt(index, SanitizedThreadName(name), ClockOf(seat.begin_ns));
    if (!slot.ok()) return slot.status();
    kept_[index] = {.slot = *slot};
    const std::uint64_t thread_id = (*slot)->thread_id();
    const std::int64_t since_cpu_ns = ClockOf(seat.since_cpu_ns);
    Platform::NoteSlot(index, thread_id);
    Platform::NoteClock(thread_id, since_cpu_ns);
    // What the thread blocks shows when no request arrives (DeliveryCheck). One look would not do:
    // the C library blocks all signals while a thread begins another, and at a thread's end.
    session.Attach(**slot, {.monotonic_ns = ClockOf(seat.since_ns), .cpu_ns = since_cpu_ns});
    return absl::OkStatus();
  }

  template <class Session>
  void End(Slot& slot, const Seat& seat, Session& session) {
    Platform::NoteClock(slot.thread_id(), ClockOf(seat.end_cpu_ns));
    slot.is_ending.store(true, std::memory_order_release);
    session.Detach(slot);
    Platform::ForgetClock(slot.thread_id());
    registry_.Unregister(&slot);
  }

  // -1 is unknown.
  static std::int64_t ClockOf(std::int64_t clock_ns) {
    return std::clamp<std::int64_t>(clock_ns, -1, kMaxSeatClockNs);
  }

  const SharedArea& area_;
  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  std::vector<Kept> kept_;  // by seat
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
