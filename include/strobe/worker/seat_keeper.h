// SeatKeeper: begins and ends the accounts of the threads whose seats change.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/thread_info.h"
#include "strobe/runtime/collector_counters.h"
#include "strobe/runtime/thread_registry.h"
#include "strobe/worker/shared_area.h"

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
  template <class Session>
  void SeeTo(std::uint32_t index, Session& session) {
    const Seat& seat = *area_.At(index);
    const SeatState state = seat.state.load(std::memory_order_acquire);
    if (state == SeatState::kFree) return;
    if (index >= slots_.size()) slots_.resize(index + 1);
    if (slots_[index] == nullptr) Begin(index, seat, session);
    if (state != SeatState::kLeft) return;
    if (slots_[index] != nullptr) {
      End(*std::exchange(slots_[index], nullptr), seat, session);
    } else {
      Platform::GiveBack(index);  // Begin has counted the thread as refused
    }
  }

  template <class Session>
  void Begin(std::uint32_t index, const Seat& seat, Session& session) {
    const std::string name(seat.name, std::min<std::size_t>(seat.name_bytes, Seat::kNameBytes));
    const absl::StatusOr<Slot*> slot =
        registry_.Adopt(index, SanitizedThreadName(name), ClockOf(seat.begin_ns));
    if (!slot.ok()) {
      registry_.CountRefused();
      return;
    }
    slots_[index] = *slot;
    const std::uint64_t thread_id = (*slot)->thread_id();
    const std::int64_t since_cpu_ns = ClockOf(seat.since_cpu_ns);
    Platform::NoteSlot(index, thread_id);
    Platform::NoteClock(thread_id, since_cpu_ns);
    // What the thread blocks shows when no request arrives (DeliveryCheck). One look would not do:
    // the C library blocks all signals while a thread begins another, and at a thread's end.
    session.Attach(**slot, {.monotonic_ns = ClockOf(seat.since_ns), .cpu_ns = since_cpu_ns});
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
  std::vector<Slot*> slots_;  // by seat: those that are attached
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
