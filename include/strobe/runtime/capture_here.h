// CaptureHere: the sampled thread records a sample of itself, as an allocation hook does. Data
// plane: callable wherever a signal may arrive, but not from a signal handler that has interrupted
// CaptureHere itself.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/provider/sample_provider.h"
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

// The most walks of one call. If more requests arrive during each walk, the thread's next capture
// serves the last ones.
inline constexpr int kMaxServes = 4;

// Adds the event's amounts to the channel's requests, and serves them by a walk of the calling
// thread's own stack. Requests that arrive meanwhile, by the nesting rule, get the same stack.
// Returns false, and adds nothing, if no session takes this provider's events from the channel.
template <class Traits>
STROBE_SIGNAL_SAFE STROBE_NOINLINE bool ServeHere(SlotArena<Traits>& arena,
                                                  SampleChannel<Traits>& channel,
                                                  const EventSample& event,
                                                  const CaptureTarget& target) {
  const auto is_open = [&] {
    return (channel.open_events.load(std::memory_order_seq_cst) >> event.provider & 1) != 0;
  };
  if (!is_open()) return false;
  bool is_added = false;
  for (int i = 0; i < kMaxServes; ++i) {
    const bool is_nested = channel.is_capturing.exchange(true, std::memory_order_seq_cst);
    const bool is_live = channel.is_active.load(std::memory_order_seq_cst);
    if (!is_added && is_open()) {
      for (std::size_t k = 0; k < event.amounts.size(); ++k)
        AddRequest(channel, Traits::Providers::FirstCell(event.provider) + k, event.amounts[k]);
      is_added = true;
    }
    if (is_nested) break;
    if (is_live) {
      AddByOwner<std::uint32_t>(channel.counters.captures, 1);
      StackKeeper* const keeper = i == 0 ? event.keeper : nullptr;
      ServeSlot<Traits>(arena, channel, target, event.skip, keeper);
    }
    channel.is_capturing.store(false, std::memory_order_seq_cst);
    if (!is_live || !channel.is_requested()) break;
  }
  return is_added;
}

// Records the event's amounts with the calling thread's stack at `registers`, which belong to a
// function that has not returned. Returns false, and counts nothing, if the calling thread has no
// registration in the arena, or no session takes the events. Signal-safe.
template <class Traits>
STROBE_SIGNAL_SAFE bool CaptureHere(SlotArena<Traits>& arena, const EventSample& event,
                                    const NativeRegisters* registers) {
  SampleChannel<Traits>* const channel = OwnSlot(arena);
  if (channel == nullptr) return false;
  // The rest of the token may change with an attachment that begins now.
  const SlotToken token{.arena = channel->token.arena, .index = channel->token.index};
  return ServeHere(arena, *channel, event, {.token = token, .registers = registers});
}

}  // namespace strobe::internal
STROBE_HIDDEN_END
