// CaptureHere: the calling thread records a sample of itself, as an allocation hook does. Data
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
#include "strobe/runtime/capture/capture.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/channels/sample_channel.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The calling thread's innermost registration in the arena, or nullptr.
template <class Traits>
STROBE_SIGNAL_SAFE SampleChannel<Traits>* OwnChannel(ChannelArena<Traits>& arena) {
  for (const RegistrationLink* link = RegistrationLinks(); link != nullptr; link = link->next) {
    if (link->token->arena == arena.number()) return arena.Find(link->token->index);
  }
  return nullptr;
}

// The most walks for interruptions of one call. If more arrive during each walk, the thread's next
// interruption serves the last ones.
inline constexpr int kMaxServes = 4;

// True if the session that the channel is attached to takes the provider's events.
template <class Traits>
STROBE_SIGNAL_SAFE bool TakesEvents(const SampleChannel<Traits>& channel, std::size_t provider) {
  return (channel.open_events.load(std::memory_order_seq_cst) >> provider & 1) != 0;
}

// Credits the cells of the event's provider with its amounts, and sets `weights` to them. False if
// there is no amount.
template <class Traits>
STROBE_SIGNAL_SAFE bool CreditEvent(SampleChannel<Traits>& channel, const EventSample& event,
                                    CellWeights<Traits>& weights) {
  bool has_amount = false;
  for (std::size_t k = 0; k < event.amounts.size(); ++k) {
    const std::size_t cell = Traits::Providers::FirstCell(event.provider) + k;
    if (event.amounts[k] == 0 || cell >= weights.size()) continue;
    weights[cell] = event.amounts[k];
    channel.cells[cell].credited.fetch_add(event.amounts[k], std::memory_order_relaxed);
    has_amount = true;
  }
  return has_amount;
}

// Records the event's amounts with the calling thread's own stack. `is_nested` is what the calling
// thread found in is_capturing when it set it: then, and while the collector frees the channel's
// memory, no stack can be had, and the amounts are lost. Returns false, and counts nothing, if no
// session takes this provider's events from the channel any more.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE bool ServeHere(ChannelArena<Traits>& arena,
                                                    SampleChannel<Traits>& channel,
                                                    const EventSample& event,
                                                    const CaptureTarget& target, bool is_nested) {
  const bool is_live = channel.is_active.load(std::memory_order_seq_cst) && !is_nested;
  const bool is_taken = TakesEvents(channel, event.provider);
  CellWeights<Traits> weights{};
  if (is_taken && CreditEvent(channel, event, weights)) {
    if (is_live) {
      AddByOwner<std::uint32_t>(channel.counters.captures, 1);
      RecordWeights<Traits>(arena, channel, target, weights, event.skip, event.keeper);
    } else {
      LoseWeights(channel.cells, weights);
    }
  }
  if (!is_nested) channel.is_capturing.store(false, std::memory_order_seq_cst);
  return is_taken;
}

// Serves the requests of interruptions that came during a capture of the calling thread, by a walk
// of its stack. Other requests wait for their own interruptions: the thread was not yet here when
// they were made.
template <class Traits>
[[gnu::noinline]] STROBE_SIGNAL_SAFE void ServeInterruptions(ChannelArena<Traits>& arena,
                                                             SampleChannel<Traits>& channel,
                                                             const CaptureTarget& target,
                                                             std::uint64_t skip) {
  for (int i = 0; i < kMaxServes && channel.was_interrupted.load(std::memory_order_relaxed); ++i) {
    if (channel.is_capturing.exchange(true, std::memory_order_seq_cst)) return;
    channel.was_interrupted.store(false, std::memory_order_relaxed);
    if (channel.is_active.load(std::memory_order_seq_cst)) {
      AddByOwner<std::uint32_t>(channel.counters.captures, 1);
      ServeChannel<Traits>(arena, channel, target, skip);
    }
    channel.is_capturing.store(false, std::memory_order_seq_cst);
  }
}

// For a thread that is not registered: takes one of the shared channels, and sets it up for the
// thread. If all are in use, returns the first, and sets `is_nested`. nullptr if no session takes
// the provider's events.
template <class Traits>
STROBE_SIGNAL_SAFE SampleChannel<Traits>* SharedChannel(ChannelArena<Traits>& arena,
                                                        std::size_t provider, bool& is_nested) {
  SampleChannel<Traits>* channel = nullptr;
  is_nested = true;
  if (!arena.IsOfThisProcess()) return channel;
  for (std::uint32_t i = 0; is_nested && i < ChannelArena<Traits>::kSharedChannels; ++i) {
    SampleChannel<Traits>* const shared = arena.Find(i);
    if (shared == nullptr || !TakesEvents(*shared, provider)) continue;
    is_nested = shared->is_capturing.exchange(true, std::memory_order_seq_cst);
    if (channel == nullptr || !is_nested) channel = shared;
  }
  if (!is_nested) {
    // Without its slow span, which would stay in the channel after its end.
    const SampleContext own = OwnContext();
    channel->context.SetLabels(own.labels());
    channel->context.SetTrace(own.trace);
    // Elsewhere the bounds are left empty, and the walk reads by calls that cannot fault: no system
    // call tells the bounds.
    if constexpr (Traits::Platform::kCopiesStacks)
      channel->stack = Traits::Platform::CurrentThread().stack;
  }
  return channel;
}

// Records the event's amounts with the calling thread's stack at `registers`, which belong to a
// function that has not returned. Returns false, and counts nothing, if no session takes the
// events. Signal-safe.
template <class Traits>
STROBE_SIGNAL_SAFE bool CaptureHere(ChannelArena<Traits>& arena, const EventSample& event,
                                    const NativeRegisters* registers) {
  bool is_nested = false;
  SampleChannel<Traits>* channel = OwnChannel(arena);
  if (channel == nullptr) {
    channel = SharedChannel(arena, event.provider, is_nested);
  } else if (TakesEvents(*channel, event.provider)) {
    is_nested = channel->is_capturing.exchange(true, std::memory_order_seq_cst);
  } else {
    return false;
  }
  if (channel == nullptr) return false;
  // The rest of the token may change with an attachment that begins now.
  const ChannelToken token{.arena = channel->token.arena, .index = channel->token.index};
  const CaptureTarget target{.token = token, .registers = registers};
  const bool is_taken = ServeHere(arena, *channel, event, target, is_nested);
  if (!is_nested && channel->was_interrupted.load(std::memory_order_relaxed)) [[unlikely]]
    ServeInterruptions(arena, *channel, target, event.skip);
  return is_taken;
}

}  // namespace internal
}  // namespace strobe
