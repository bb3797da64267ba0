// RegisteredThread: the identity of one registered thread, and the collector's account of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/channels/sample_channel.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/runtime/threads/signal_mask.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The collector's account of one provider's cell, or of a WaitProvider.
struct ProviderAccount {
  // Of a detached thread: the residual that has not been added to the thread's rows. Before: minus
  // what has been added already.
  std::int64_t residual = 0;
  std::uint64_t received = 0;  // by the collector; wraps

  // Amounts come out of rings and may have any value, so all sums are unsigned.
  void AddResidual(std::int64_t number) {
    residual = static_cast<std::int64_t>(static_cast<std::uint64_t>(residual) +
                                         static_cast<std::uint64_t>(number));
  }
  // At the detachment. If no clock tells the residual, what has been settled stays as it is.
  void AddLastResidual(std::optional<std::int64_t> number) {
    AddResidual(number.value_or(static_cast<std::int64_t>(-static_cast<std::uint64_t>(residual))));
  }
  void SubtractResidual(std::int64_t number) {
    residual = static_cast<std::int64_t>(static_cast<std::uint64_t>(residual) -
                                         static_cast<std::uint64_t>(number));
  }

  // Called by the collector.
  void Receive(std::int64_t weight) { received += static_cast<std::uint64_t>(weight); }
  // Settles the account at the detachment: returns the cell's credit until now, and subtracts it
  // from `received`. A capture that ends later may add to the cell; no account includes that.
  std::int64_t Settle(const ProviderCell& cell) {
    const std::int64_t settled = cell.credited.load(std::memory_order_relaxed);
    received -= static_cast<std::uint64_t>(settled);
    return settled;
  }
  // Settles the account of a WaitProvider, which has no cell: all that was credited is received.
  std::int64_t Settle() { return static_cast<std::int64_t>(std::exchange(received, 0)); }
  // After Settle: the part of the credit that no record has brought. Less than 0 if a later
  // capture's record came, too.
  [[nodiscard]] std::int64_t missing() const { return static_cast<std::int64_t>(-received); }
};

// What is kept apart from a channel that another process has made: that process may write anything
// there at any time.
struct ForeignIdentity {
  std::uint32_t index = 0;
  std::uint64_t thread_id = 0;
};
struct OwnIdentity {};

// The thread's samples are in its channel. The ThreadRegistry owns this object, and reuses it for
// another thread. Control plane; requires the thread's control mutex while the thread is live.
template <class Traits>
struct RegisteredThread : RegistrationLink {
  static constexpr bool kIsForeign = AdoptsChannels<typename Traits::Platform>;

  SampleChannel<Traits>* channel = nullptr;
  std::array<ProviderAccount, Traits::Providers::kAccountCount> accounts;
  typename Traits::Providers::ThreadStates states;
  typename Traits::Platform::Timer timer;
  bool is_attached = false;
  // True if a poll has found the thread waiting and interrupted it. The next record with a weight
  // of that provider has the stack. Used by the collector.
  bool is_wait_interrupted : 1 = false;
  // True if records have been drained since the last poll. Used by the collector.
  bool has_new_records : 1 = false;
  // True from the attachment in this session until the account is closed. Only then do the ring's
  // records belong to this session.
  bool needs_finish = false;
  // True if the threads that are not registered share the thread: see
  // ChannelArena::kSharedChannels. It has their events only, and no accounts by a clock.
  bool is_shared = false;
  // True if the registration has ended, or its end has begun: no session may attach the thread any
  // more. The thread itself writes it.
  std::atomic<bool> is_ending{true};
  std::atomic<TimerKind> timer_kind{TimerKind::kNone};
  // Of the thread itself. unblocked_signal: by us; blocked again at the end. holds_signal_stack:
  // one that we have given to it.
  std::uint8_t unblocked_signal : 7 = 0;
  bool holds_signal_stack : 1 = false;
  // blocked_signals: what the thread blocks, as of its registration or of the collector's last
  // check; bit n - 1 stands for signal n. blocks_signal: the session's signal is one of them. Then
  // no signal is sent, because it would stay pending, or a sigwait would return it.
  std::atomic<bool> blocks_signal{false};
  std::uint32_t life_samples = 0;  // captures that the recordings' lives do not have yet
  std::uint64_t blocked_signals = 0;
  std::int64_t attach_cpu_ns = 0;
  // The registration's life, by the monotonic clock. It ends in a detachment.
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;  // 0 before
  // Of an attached thread: what its CPU clock read when its life was last settled. Of a detached
  // one: the CPU time since then; -1 if unknown.
  std::int64_t life_cpu_ns = 0;

  [[no_unique_address]] std::conditional_t<kIsForeign, ForeignIdentity, OwnIdentity> identity;

  // Used by the registry, under its mutex.
  std::uint32_t live_index = 0;

  // Used by the collector.
  static constexpr std::uint32_t kNoKey = 0xFFFFFFFF;
  std::uint32_t thread_key = kNoKey;  // the intake's number for the thread
  std::string name;                   // written before the thread is attached

  // Makes `own` the channel of this thread, whose index that is.
  void Use(SampleChannel<Traits>& own, std::uint32_t index) {
    channel = &own;
    if constexpr (kIsForeign) identity.index = index;
    token = &own.token;
    is_awaited = &IsAwaited;
    context = &own.context;
  }

  // Of the thread.
  [[nodiscard]] std::uint32_t index() const {
    if constexpr (kIsForeign) {
      return identity.index;
    } else {
      return channel->token.index;
    }
  }
  [[nodiscard]] std::uint64_t thread_id() const {
    if constexpr (kIsForeign) {
      return identity.thread_id;
    } else {
      return channel->thread_id;
    }
  }

  // Signal-safe.
  [[nodiscard]] static bool IsAwaited(const RegistrationLink& link) {
    const auto& channel = *static_cast<const RegisteredThread&>(link).channel;
    return channel.is_requested() && channel.is_active.load(std::memory_order_relaxed);
  }
};

// Stops the thread's timer, if it has one.
template <class Traits>
void StopTimers(RegisteredThread<Traits>& thread) {
  using Platform = typename Traits::Platform;
  Platform::StopTimer(thread.timer);
  if constexpr (HasRandomTimers<Platform>) Platform::StopRandomTimer(thread.random_timer);
  thread.timer_kind.store(TimerKind::kNone, std::memory_order_relaxed);
}

}  // namespace internal
}  // namespace strobe
