// ThreadAccounts: begins and ends the sampling of threads, and computes what the records of a
// thread lack.
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
#include "strobe/runtime/threads/provider_view.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// How long a detachment waits for a capture that is under way. A longer capture means that the
// thread is stopped, for example by a debugger.
inline constexpr std::int64_t kCaptureWaitNs = 100'000'000;

// The account of a thread is open from its attachment until its records and its residual have been
// counted. Attach and Detach may be called from any thread; everything else by the collector, or,
// after it has ended, by the thread that ends the session.
template <class Traits>
class ThreadAccounts {
 public:
  using Thread = RegisteredThread<Traits>;
  using Providers = typename Traits::Providers;
  using Platform = typename Traits::Platform;
  static constexpr std::size_t kCount = Providers::kCount;
  using Row = std::array<std::int64_t, Providers::kValueCount>;

  // What a thread's clocks read; -1 if they were not read.
  struct Clocks {
    std::int64_t monotonic_ns = -1;
    std::int64_t cpu_ns = -1;
  };

  ThreadAccounts(const SamplingOptions& options, ThreadRegistry<Traits>& registry,
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

  // Begins to sample a live thread; the account begins at `since`, or now. Does nothing if the
  // thread is attached already, or after End. A capture of an earlier session may still write into
  // the thread: then the thread is noted as postponed.
  void Attach(Thread& thread, const Clocks& since = {}) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (thread.is_attached || thread.is_ending.load(std::memory_order_acquire) ||
        has_ended_.load(std::memory_order_seq_cst))
      return;
    if (thread.needs_finish) return;  // the previous account is not settled yet
    if (thread.channel->is_capturing.load(std::memory_order_seq_cst)) {
      has_postponed_.store(true, std::memory_order_relaxed);
      return;
    }
    Reset(thread, since);
    thread.channel->open_events.store(static_cast<std::uint8_t>(enabled_events_),
                                      std::memory_order_seq_cst);
    thread.channel->is_active.store(true, std::memory_order_seq_cst);
    const std::int64_t now_ns = since.monotonic_ns >= 0 ? since.monotonic_ns : clock_.MonotonicNs();
    RandomSource random(static_cast<std::uint64_t>(now_ns) ^ thread.thread_id() << 32 ^
                        thread.channel->token.use);
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      auto& state = std::get<index>(thread.states);
      if constexpr (kIsClocked<decltype(provider)>) {
        if (thread.is_shared) return;
        ProviderView<Traits> view(thread, index, signal());
        provider.Attach(view, state, random, now_ns);
      } else {
        std::destroy_at(&state);
        std::construct_at(&state);
      }
    });
    attachments_.fetch_add(1, std::memory_order_release);
  }

  // Ends the sampling of a thread; reads each provider's residual. Returns what the clocks read
  // then; nothing if the thread was not attached.
  std::optional<Clocks> Detach(Thread& thread) {
    const std::lock_guard lock(registry_.ControlMutex(thread));
    if (!thread.is_attached) return std::nullopt;
    thread.channel->is_active.store(false, std::memory_order_seq_cst);
    thread.channel->open_events.store(0, std::memory_order_seq_cst);
    StopTimers(thread);
    WaitForCapture(thread);
    Clocks now = ReadClocks(thread);
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (kIsClocked<decltype(provider)>) {
        if (thread.is_shared) return;
        ProviderView<Traits> view(thread, index, signal(), now.cpu_ns,
                                  Settle(thread, provider, index));
        ProviderAccount& account = thread.accounts[Providers::FirstAccount(index)];
        const std::optional<std::int64_t> residual =
            provider.Detach(view, std::get<index>(thread.states), now.monotonic_ns);
        account.AddLastResidual(residual);
        if (!residual) account.Receive(-LostOf(thread, index));
      } else {
        // No clock measures requests that were not served: they count as credited, and are lost.
        for (std::size_t i = Providers::FirstCell(index); i < Providers::FirstCell(index + 1);
             ++i) {
          ProviderCell& cell = thread.channel->cells[i];
          cell.credited.fetch_add(cell.requested.exchange(0, std::memory_order_acq_rel),
                                  std::memory_order_relaxed);
          thread.accounts[i].Settle(cell);
        }
      }
    });
    thread.life_cpu_ns = LifeOf(thread, now).cpu_ns;
    if (thread.is_ending.load(std::memory_order_acquire)) thread.end_ns = now.monotonic_ns;
    thread.is_attached = false;
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

  // What the credited weights of a detached thread have and its records lack.
  Row MissingOf(const Thread& thread) {
    Row row{};
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      row[kColumns[i]] = thread.accounts[i].missing();
    return row;
  }

  // The weights that no record has and no clock tells.
  Row LostOf(const Thread& thread) {
    Row row{};
    providers_.ForEachEnabled([&](const auto& provider, auto index) {
      if constexpr (!kIsClocked<decltype(provider)>) {
        for (std::size_t i = Providers::FirstCell(index); i < Providers::FirstCell(index + 1); ++i)
          row[kColumns[i]] = thread.channel->cells[i].lost.load(std::memory_order_relaxed);
      }
    });
    return row;
  }
  // Notes that they have been added to the thread's rows.
  static void NoteLost(Thread& thread, const Row& row) {
    for (std::size_t i = 0; i < Providers::kCellCount; ++i) {
      if (row[kColumns[i]] != 0)
        thread.channel->cells[i].lost.fetch_sub(row[kColumns[i]], std::memory_order_relaxed);
    }
  }

  // The clocks of an attached thread.
  [[nodiscard]] Clocks ReadClocks(const Thread& thread) const {
    if (!thread.is_attached) return {};
    return {.monotonic_ns = clock_.MonotonicNs(),
            .cpu_ns = thread.is_shared ? -1 : Platform::ThreadCpuTimeNs(thread.thread_id())};
  }
  // The difference between a thread's clocks and its rows, as far as providers can tell it at any
  // time. `now` is what ReadClocks has returned.
  Row ResidualOf(Thread& thread, Clocks now) {
    Row row{};
    if (thread.is_shared) return row;
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (kIsClocked<decltype(provider)>) {
        constexpr std::size_t kAccount = Providers::FirstAccount(index);
        ProviderAccount account = thread.accounts[kAccount];
        if (thread.is_attached && !ReadResidual(provider, thread, index, now, account)) return;
        row[kColumns[kAccount]] = account.residual;
      }
    });
    return row;
  }
  Row ResidualOf(Thread& thread) { return ResidualOf(thread, ReadClocks(thread)); }
  // What no recording has of the thread's life.
  [[nodiscard]] static LifePart LifeOf(const Thread& thread, const Clocks& now) {
    LifePart part{.begin_ns = thread.begin_ns,
                  .end_ns = thread.end_ns,
                  .cpu_ns = thread.life_cpu_ns,
                  .samples = thread.life_samples};
    if (thread.is_attached) {
      const bool is_known = thread.attach_cpu_ns >= 0 && now.cpu_ns >= thread.life_cpu_ns;
      part.cpu_ns = is_known ? now.cpu_ns - thread.life_cpu_ns : -1;
    }
    return part;
  }
  // Notes that the residual has been added to the thread's rows.
  void NoteSettled(Thread& thread, const Row& residual) {
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      thread.accounts[i].SubtractResidual(residual[kColumns[i]]);
  }
  // Notes that the recordings have that part of the thread's life.
  static void NoteSettled(Thread& thread, const LifePart& part) {
    if (part.cpu_ns > 0) thread.life_cpu_ns += thread.is_attached ? part.cpu_ns : -part.cpu_ns;
    thread.life_samples -= static_cast<std::uint32_t>(part.samples);
  }

 private:
  template <class Provider>
  static constexpr bool kIsClocked = ClockedProvider<std::remove_cvref_t<Provider>>;
  static constexpr auto kColumns = Providers::AccountColumns();

  // Settles the account of a clocked provider. Returns all that it has been credited with.
  template <class Provider, class Index>
  static std::int64_t Settle(Thread& thread, const Provider& /*provider*/, Index index) {
    ProviderAccount& account = thread.accounts[Providers::FirstAccount(index)];
    if constexpr (WaitProvider<Provider>) {
      return account.Settle();
    } else {
      return account.Settle(thread.channel->cells[Providers::FirstCell(index)]);
    }
  }

  // What no record has of a clocked provider's weight.
  static std::int64_t LostOf(const Thread& thread, std::size_t index) {
    const std::size_t cell = Providers::FirstCell(index);
    const bool has_cell = cell < Providers::FirstCell(index + 1);
    return has_cell ? thread.channel->cells[cell].lost.load(std::memory_order_relaxed) : 0;
  }

  // Adds the residual until now. Returns false if the provider cannot tell it now.
  template <class Provider, class Index>
  bool ReadResidual(Provider& provider, Thread& thread, Index index, Clocks& now,
                    ProviderAccount& account) {
    const auto received = static_cast<std::int64_t>(account.received);
    ProviderView<Traits> view(thread, index, signal(), now.cpu_ns, received);
    auto& state = std::get<index>(thread.states);
    if constexpr (requires { provider.Residual(view, state, received, received); }) {
      const std::optional<std::int64_t> residual =
          provider.Residual(view, state, received, now.monotonic_ns);
      if (residual) account.AddResidual(*residual);
      return residual.has_value();
    }
    return false;
  }

  void Reset(Thread& thread, const Clocks& since) {
    DropLateRecords(thread);
    ++thread.channel->token.use;
    for (ProviderCell& cell : thread.channel->cells) cell.Reset();
    thread.accounts = {};
    thread.channel->note.Reset();
    thread.channel->wants_note.store(false, std::memory_order_relaxed);
    thread.channel->memo_is_stale.store(true, std::memory_order_relaxed);
    thread.attach_cpu_ns =
        since.cpu_ns >= 0 ? since.cpu_ns : Platform::ThreadCpuTimeNs(thread.thread_id());
    thread.life_cpu_ns = thread.attach_cpu_ns;
    thread.life_samples = 0;
    thread.timer_kind.store(TimerKind::kNone, std::memory_order_relaxed);
    thread.blocks_signal.store(HasSignal(thread.blocked_signals, signal()),
                               std::memory_order_relaxed);
    thread.thread_key = Thread::kNoKey;
    thread.is_wait_interrupted = false;
    thread.has_new_records = false;
    thread.needs_finish = true;
    thread.is_attached = true;
  }

  // Drops what a capture wrote after its session had settled the thread's account: the residual of
  // that account stands for it.
  void DropLateRecords(Thread& thread) {
    registry_.arena()->Unmark(thread.index());
    // Bounded, because another process may write records all the time.
    for (std::size_t left = registry_.UsedBytes(thread); left > 0; --left) {
      if (registry_.PeekRecord(thread).empty()) break;
      thread.channel->ring.Pop();
    }
    thread.channel->has_slices.store(false, std::memory_order_relaxed);
  }

  void WaitForCapture(const Thread& thread) {
    if (thread.thread_id() == Platform::CurrentThreadId()) return;
    if (!WaitUntilClear(thread.channel->is_capturing, kCaptureWaitNs))
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

}  // namespace internal
}  // namespace strobe
