// RegisteredThread: the identity of one registered thread, and the collector's account of it.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/sample_channel.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// What has become of one provider's cell.
struct ProviderAccount {
  std::int64_t residual = 0;   // set at the detachment
  std::uint64_t received = 0;  // by the collector; wraps

  // The collector's. A weight comes out of a ring: whatever it is, this must be defined.
  void Receive(std::int64_t weight) { received += static_cast<std::uint64_t>(weight); }
  // At the detachment. Returns what the cell was credited with until now; from now on `received`
  // counts from there. A capture that ends later may add to the cell: no account has that.
  std::int64_t Settle(const ProviderCell& cell) {
    const std::int64_t settled = cell.credited.load(std::memory_order_relaxed);
    received -= static_cast<std::uint64_t>(settled);
    return settled;
  }
  // After Settle: the part of the credit that no record has brought. Less than 0 where a later
  // capture's record came, too.
  [[nodiscard]] std::int64_t missing() const { return static_cast<std::int64_t>(-received); }
};

// Whether a mask, signal n by bit n - 1, holds the signal; none holds 0, which is no signal.
constexpr bool HasSignal(std::uint64_t mask, int signal) {
  return signal > 0 && (mask >> (signal - 1) & 1) != 0;
}

// What is sampled of the thread is in its channel. The ThreadRegistry owns it, and uses it again
// for another thread. Control plane, under the thread's control mutex while it is live.
template <class Traits>
struct RegisteredThread : ThreadLink {
  SampleChannel<Traits>* channel = nullptr;
  std::array<ProviderAccount, Traits::Providers::kCellCount> accounts;  // as the channel's cells
  typename Traits::Providers::ThreadStates states;
  typename Traits::Platform::Timer timer;
  bool is_attached = false;
  // Attached in this session, and not yet accounted for: only then are the ring's records of this
  // session.
  bool needs_finish = false;
  // The registration is over, or its end has begun: no session may attach the thread any more. The
  // thread itself writes it.
  std::atomic<bool> is_ending{true};
  std::atomic<bool> was_timer_refused{false};
  std::uint8_t unblocked_signal = 0;  // by us, to be blocked again
  // Signals that the thread blocks, signal n by bit n - 1, as of its registration or of the
  // collector's last check; and whether the session's is one of them: then nothing is sent, for it
  // would stay pending, or a sigwait would return it.
  std::atomic<bool> blocks_signal{false};
  std::uint64_t blocked_signals = 0;
  std::int64_t attach_cpu_ns = 0;

  // The registry's, under its mutex.
  std::uint32_t live_index = 0;

  // The collector's.
  static constexpr std::uint32_t kNoKey = 0xFFFFFFFF;
  std::uint32_t thread_key = kNoKey;  // the aggregator's
  std::string name;                   // written before the thread is attached

  // From now on the thread's state is that of this channel.
  void Use(SampleChannel<Traits>& own) {
    channel = &own;
    token = &own.token;
    is_awaited = &IsAwaited;
  }

  // Signal-safe.
  [[nodiscard]] static bool IsAwaited(const ThreadLink& link) {
    const auto& channel = *static_cast<const RegisteredThread&>(link).channel;
    return channel.is_requested() && channel.is_active.load(std::memory_order_relaxed);
  }
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
