// CaptureHere: a sample that the sampled thread itself brings, as an allocation's hook does. Data
// plane: it may be called wherever a signal may arrive, but not inside of a signal's handler that
// has interrupted it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/arch/current_registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/capture.h"
#include "strobe/runtime/registered_thread.h"
#include "strobe/runtime/sample_channel.h"
#include "strobe/runtime/slot_arena.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// The calling thread's innermost registration in the arena, or nullptr.
template <class Traits>
STROBE_SIGNAL_SAFE SampleChannel<Traits>* OwnSlot(SlotArena<Traits>& arena) {
  for (ThreadLink* link = ThreadLinks(); link != nullptr; link = link->next) {
    if (link->token->arena == arena.number())
      return static_cast<RegisteredThread<Traits>*>(link)->channel;
  }
  return nullptr;
}

// A capture that is interrupted again and again leaves the last requests to the thread's next one.
inline constexpr int kMaxServes = 4;

// Adds the weight to what is requested of the channel, and serves it by a walk of the calling
// thread's own stack. What is requested meanwhile, by the nesting rule, gets the same stack. False,
// and nothing is added, where no session samples the channel.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_NOINLINE bool ServeHere(SlotArena<Traits>& arena,
                                                  SampleChannel<Traits>& channel,
                                                  std::size_t provider, std::int64_t weight,
                                                  const CaptureTarget& target) {
  bool is_added = false;
  for (int i = 0; i < kMaxServes; ++i) {
    const bool is_nested = channel.is_capturing.exchange(true, std::memory_order_seq_cst);
    const bool is_live = channel.is_active.load(std::memory_order_seq_cst);
    if (is_live && !is_added) {
      AddRequest(channel, provider, weight);
      is_added = true;
    }
    if (is_nested) break;
    if (is_live) {
      AddByOwner<std::uint32_t>(channel.counters.captures, 1);
      ServeSlot<Traits>(arena, channel, target);
    }
    channel.is_capturing.store(false, std::memory_order_seq_cst);
    if (!is_live || !channel.is_requested()) break;
  }
  return is_added;
}

// Gives the stack of the calling function the weight `weight` of provider number `provider`. False,
// and nothing is counted, where the calling thread has no registration in the arena or no session
// runs. Signal-safe.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE bool CaptureHere(SlotArena<Traits>& arena,
                                                         std::size_t provider,
                                                         std::int64_t weight) {
  SampleChannel<Traits>* const channel = OwnSlot(arena);
  if (channel == nullptr) return false;
  const CurrentRegisters registers;
  return ServeHere(arena, *channel, provider, weight,
                   {.token = channel->token, .registers = registers.get()});
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
