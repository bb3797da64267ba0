// SlotAccounts: begins and ends the sampling of slots, and computes what the records of a slot
// lack.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "strobe/aggregate/life_table.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/threads/slot_thread.h"
#include "strobe/runtime/threads/thread_registry.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// How long a detachment waits for a capture that is under way. A longer capture means that the
// thread is stopped, for example by a debugger.
inline constexpr std::int64_t kCaptureWaitNs = 100'000'000;

// The account of a slot is open from its attachment until its records and its residual have been
// counted. Attach and Detach may be called from any thread; everything else by the collector, or,
// after it has ended, by the thread that ends the session.
template <class Traits>
class SlotAccounts {
 public:
  using Slot = RegisteredThread<Traits>;
  using Providers = typename Traits::Providers;
  using Platform = typename Traits::Platform;
  static constexpr std::size_t kCount = Providers::kCount;
  using Row = std::array<std::int64_t, Providers::kValueCount>;

  // What a thread's clocks read; -1 if they were not read.
  struct Clocks {
    std::int64_t monotonic_ns = -1;
    std::int64_t cpu_ns = -1;
  };

  SlotAccounts(const SamplingOptions& options, ThreadRegistry<Traits>& registry,
               CollectorCounters& counters, int signal,
               const typename Providers::Parts& providers = {})
      : registry_(registry), counters_(counters), signal_(signal), providers_(options, providers) {
    providers_.ForEachEnabled([&](const auto& provider, auto index) {
      first_enabled_ = std::min<std::size_t>(first_enabled_, index);
      if constexpr (kIsClocked<decltype(provider)>) periods_ns_[index] = provider.period_ns();
      if constexpr (EventProvider<std::remove_cvref_t<decltype(provider)>>)
        enabled_events_ |= 1U << index;
    });
  }

  [[nodiscard]] Providers& providers() { return providers_; }
  // Calls visit(its column, the column of its polls) for each WaitProvider that is enabled.
  template <class Visitor>
  void VisitWaitColumns(const Visitor& visit) {
    providers_.ForEachEnabled([&](const auto& provider, auto index) {
      using Provider = std::remove_cvref_t<decltype(provider)>;
      if constexpr (WaitProvider<Provider>)
        visit(Providers::FirstColumn(index),
              Providers::ShownColumn(Providers::template IndexOf<typename Provider::WaitsOf>()));
    });
  }
  // The first provider that the options enable; kCount if they enable none.
  [[nodiscard]] std::size_t first_enabled() const { return first_enabled_; }
  // The sampling period of a provider; 0 if it has none, or is not enabled.
  [[nodiscard]] std::int64_t period_ns(std::size_t provider) const {
    return provider < kCount ? periods_ns_[provider] : 0;
  }
  // The column that the first enabled provider shows by default.
  [[nodiscard]] std::size_t shown_column() const { return Providers::ShownColumn(first_enabled_); }
  [[nodiscard]] int signal() const { return signal_.load(std::memory_order_relaxed); }
  void set_signal(int signal) { signal_.store(signal, std::memory_order_relaxed); }

  // Begins to sample a live slot; the account begins at `since`, or now. Does nothing if the slot
  // is attached already, or after End. A capture of an earlier session may still write into the
  // slot: then the thread is noted as postponed.
  void Attach(Slot& slot, const Clocks& since = {}) {
    const std::lock_guard lock(registry_.ControlMutex(slot));
    if (slot.is_attached || slot.is_ending.load(std::memory_order_acquire) ||
        has_ended_.load(std::memory_order_seq_cst))
      return;
    if (slot.needs_finish) return;  // the previous account is not settled yet
    if (slot.channel->is_capturing.load(std::memory_order_seq_cst)) {
      has_postponed_.store(true, std::memory_order_relaxed);
      return;
    }
    Reset(slot, since);
    slot.channel->open_events.store(static_cast<std::uint8_t>(enabled_events_),
                                    std::memory_order_seq_cst);
    slot.channel->is_active.store(true, std::memory_order_seq_cst);
    const std::int64_t now_ns = since.monotonic_ns >= 0 ? since.monotonic_ns : clock_.MonotonicNs();
    RandomSource random(static_cast<std::uint64_t>(now_ns) ^ slot.thread_id() << 32 ^
                        slot.channel->token.use);
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      auto& state = std::get<index>(slot.states);
      if constexpr (kIsClocked<decltype(provider)>) {
        if (slot.is_shared) return;
        SlotThread<Traits> thread(slot, index, signal());
        provider.Attach(thread, state, random, now_ns);
      } else {
        std::destroy_at(&state);
        std::construct_at(&state);
      }
    });
    attachments_.fetch_add(1, std::memory_order_release);
  }

  // Ends the sampling of a slot; reads each provider's residual. Returns what the clocks read
  // then; nothing if the slot was not attached.
  std::optional<Clocks> Detach(Slot& slot) {
    const std::lock_guard lock(registry_.ControlMutex(slot));
    if (!slot.is_attached) return std::nullopt;
    slot.channel->is_active.store(false, std::memory_order_seq_cst);
    slot.channel->open_events.store(0, std::memory_order_seq_cst);
    StopTimers(slot);
    WaitForCapture(slot);
    Clocks now = ReadClocks(slot);
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (kIsClocked<decltype(provider)>) {
        if (slot.is_shared) return;
        SlotThread<Traits> thread(slot, index, signal(), now.cpu_ns, Settle(slot, provider, index));
        slot.accounts[Providers::FirstAccount(index)].AddLastResidual(
            provider.Detach(thread, std::get<index>(slot.states), now.monotonic_ns));
      } else {
        // No clock measures requests that were not served: they count as credited, and are lost.
        for (std::size_t i = Providers::FirstCell(index); i < Providers::FirstCell(index + 1);
             ++i) {
          ProviderCell& cell = slot.channel->cells[i];
          cell.credited.fetch_add(cell.requested.exchange(0, std::memory_order_acq_rel),
                                  std::memory_order_relaxed);
          slot.accounts[i].Settle(cell);
        }
      }
    });
    slot.life_cpu_ns = LifeOf(slot, now).cpu_ns;
    if (slot.is_ending.load(std::memory_order_acquire)) slot.end_ns = now.monotonic_ns;
    slot.is_attached = false;
    return now;
  }

  // From now on Attach does nothing.
  void End() { has_ended_.store(true, std::memory_order_seq_cst); }

  // How many threads have been attached so far.
  [[nodiscard]] std::uint64_t attachments() const {
    return attachments_.load(std::memory_order_acquire);
  }

  // True if a thread was postponed since the last call.
  bool TakePostponed() { return has_postponed_.exchange(false, std::memory_order_relaxed); }

  // What the credited weights of a detached slot have and its records lack.
  Row MissingOf(const Slot& slot) {
    Row row{};
    for (std::size_t i = 0; i < kColumns.size(); ++i) row[kColumns[i]] = slot.accounts[i].missing();
    return row;
  }

  // The clocks of an attached thread.
  [[nodiscard]] Clocks ReadClocks(const Slot& slot) const {
    if (!slot.is_attached) return {};
    return {.monotonic_ns = clock_.MonotonicNs(),
            .cpu_ns = slot.is_shared ? -1 : Platform::ThreadCpuTimeNs(slot.thread_id())};
  }
  // The difference between a thread's clocks and its rows, as far as providers can tell it at any
  // time. `now` is what ReadClocks has returned.
  Row ResidualOf(Slot& slot, Clocks now) {
    Row row{};
    if (slot.is_shared) return row;
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (kIsClocked<decltype(provider)>) {
        constexpr std::size_t kAccount = Providers::FirstAccount(index);
        ProviderAccount account = slot.accounts[kAccount];
        if (slot.is_attached && !ReadResidual(provider, slot, index, now, account)) return;
        row[kColumns[kAccount]] = account.residual;
      }
    });
    return row;
  }
  Row ResidualOf(Slot& slot) { return ResidualOf(slot, ReadClocks(slot)); }
  // What no recording has of the thread's life.
  [[nodiscard]] static LifePart LifeOf(const Slot& slot, const Clocks& now) {
    LifePart part{.begin_ns = slot.begin_ns,
                  .end_ns = slot.end_ns,
                  .cpu_ns = slot.life_cpu_ns,
                  .samples = slot.life_samples};
    if (slot.is_attached) {
      const bool is_known = slot.attach_cpu_ns >= 0 && now.cpu_ns >= slot.life_cpu_ns;
      part.cpu_ns = is_known ? now.cpu_ns - slot.life_cpu_ns : -1;
    }
    return part;
  }
  // Notes that the residual has been added to the thread's rows.
  void NoteSettled(Slot& slot, const Row& residual) {
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      slot.accounts[i].SubtractResidual(residual[kColumns[i]]);
  }
  // Notes that the recordings have that part of the thread's life.
  static void NoteSettled(Slot& slot, const LifePart& part) {
    if (part.cpu_ns > 0) slot.life_cpu_ns += slot.is_attached ? part.cpu_ns : -part.cpu_ns;
    slot.life_samples -= static_cast<std::uint32_t>(part.samples);
  }

 private:
  template <class Provider>
  static constexpr bool kIsClocked = ClockedProvider<std::remove_cvref_t<Provider>>;
  static constexpr auto kColumns = Providers::AccountColumns();

  // Settles the account of a clocked provider. Returns all that it has been credited with.
  template <class Provider, class Index>
  static std::int64_t Settle(Slot& slot, const Provider& /*provider*/, Index index) {
    ProviderAccount& account = slot.accounts[Providers::FirstAccount(index)];
    if constexpr (WaitProvider<Provider>) {
      return account.Settle();
    } else {
      return account.Settle(slot.channel->cells[Providers::FirstCell(index)]);
    }
  }

  // Adds the residual until now. Returns false if the provider cannot tell it now.
  template <class Provider, class Index>
  bool ReadResidual(Provider& provider, Slot& slot, Index index, Clocks& now,
                    ProviderAccount& account) {
    const auto received = static_cast<std::int64_t>(account.received);
    SlotThread<Traits> thread(slot, index, signal(), now.cpu_ns, received);
    auto& state = std::get<index>(slot.states);
    if constexpr (requires { provider.Residual(thread, state, received, received); }) {
      const std::optional<std::int64_t> residual =
          provider.Residual(thread, state, received, now.monotonic_ns);
      if (residual) account.AddResidual(*residual);
      return residual.has_value();
    }
    return false;
  }

  void Reset(Slot& slot, const Clocks& since) {
    DropLateRecords(slot);
    ++slot.channel->token.use;
    for (ProviderCell& cell : slot.channel->cells) cell.Reset();
    slot.accounts = {};
    slot.channel->note.Reset();
    slot.channel->wants_note.store(false, std::memory_order_relaxed);
    slot.channel->memo_is_stale.store(true, std::memory_order_relaxed);
    slot.attach_cpu_ns =
        since.cpu_ns >= 0 ? since.cpu_ns : Platform::ThreadCpuTimeNs(slot.thread_id());
    slot.life_cpu_ns = slot.attach_cpu_ns;
    slot.life_samples = 0;
    slot.timer_kind.store(TimerKind::kNone, std::memory_order_relaxed);
    slot.blocks_signal.store(HasSignal(slot.blocked_signals, signal()), std::memory_order_relaxed);
    slot.thread_key = Slot::kNoKey;
    slot.is_wait_interrupted = false;
    slot.has_new_records = false;
    slot.needs_finish = true;
    slot.is_attached = true;
  }

  // Drops what a capture wrote after its session had settled the slot's account: the residual of
  // that account stands for it.
  void DropLateRecords(Slot& slot) {
    registry_.arena()->Unmark(slot.index());
    // Bounded, because another process may write records all the time.
    for (std::size_t left = registry_.UsedBytes(slot); left > 0; --left) {
      if (registry_.PeekRecord(slot).empty()) break;
      slot.channel->ring.Pop();
    }
    slot.channel->has_slices.store(false, std::memory_order_relaxed);
  }

  void WaitForCapture(const Slot& slot) {
    if (slot.thread_id() == Platform::CurrentThreadId()) return;
    if (!WaitUntilClear(slot.channel->is_capturing, kCaptureWaitNs))
      counters_.waits_abandoned.fetch_add(1, std::memory_order_relaxed);
  }

  ThreadRegistry<Traits>& registry_;
  CollectorCounters& counters_;
  typename Traits::Clock clock_;
  std::atomic<int> signal_;
  Providers providers_;
  std::size_t first_enabled_ = kCount;
  std::uint32_t enabled_events_ = 0;  // the enabled providers of events, provider n by bit n
  std::array<std::int64_t, kCount> periods_ns_{};
  std::atomic<std::uint64_t> attachments_{0};
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> has_postponed_{false};
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
