// ThreadPoller: polls the threads for the polled providers, and carries out their verdicts.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/collector_counters.h"
#include "strobe/runtime/loaded_code.h"
#include "strobe/runtime/poll_rounds.h"
#include "strobe/runtime/slot_accounts.h"
#include "strobe/runtime/slot_drain.h"
#include "strobe/runtime/slot_thread.h"
#include "strobe/runtime/thread_registry.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Of one session. Used by the collector.
template <class Traits>
class ThreadPoller {
 public:
  using Slot = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // All arguments must outlive this object.
  ThreadPoller(ThreadRegistry<Traits>& registry, LoadedCode<Traits>& code,
               CollectorCounters& counters, SlotAccounts<Traits>& accounts,
               SlotDrain<Traits>& drain)
      : registry_(registry), code_(code), counters_(counters), accounts_(accounts), drain_(drain) {}

  // Runs the poll rounds that are due. Returns when the next one is due, or INT64_MAX if none is
  // planned.
  std::int64_t Poll(std::int64_t now_ns) {
    std::int64_t next_ns = INT64_MAX;
    accounts_.providers().ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (PolledProvider<std::remove_reference_t<decltype(provider)>>) {
        PollRounds<Platform>& rounds = rounds_[index];
        if (rounds.IsDue(now_ns)) PollAll(provider, index);
        if (rounds.IsOpen(now_ns) && !rounds.Plan(now_ns, provider.poll_period_ns(random_))) {
          counters_.polls_put_off.fetch_add(1, std::memory_order_relaxed);
        }
        next_ns = std::min(next_ns, rounds.due_ns());
      }
    });
    return next_ns;
  }

  // Forgets what is known of a slot whose registration has ended, or that is attached anew.
  void Forget(const Slot& slot) {
    for (PollRounds<Platform>& rounds : rounds_)
      rounds.idle_threads().Forget(slot.channel->token.index);
  }

 private:
  template <class Provider>
  static constexpr bool kSkipsIdleThreads = ClockedProvider<Provider>&& requires {
    Provider::kSkipsIdleThreads;
  };

  template <class Provider, class Index>
  void PollAll(Provider& provider, Index index) {
    const auto copy = [&](std::vector<Slot*>& slots) { registry_.CopyLive(slots); };
    const auto poll = [&](Slot& slot) { PollThread(slot, provider, index); };
    if constexpr (kSkipsIdleThreads<Provider>) {
      rounds_[index].RunBusy(slots_, provider.period_ns(), copy, poll);
    } else {
      rounds_[index].RunAll(slots_, copy, poll);
    }
    if (drain_.has_deferred()) code_.Publish();
  }

  template <class Provider, class Index>
  void PollThread(Slot& slot, Provider& provider, Index index) {
    // Drains first: else a thread whose stack waits for a table would be interrupted again, though
    // it has not run.
    const std::unique_lock<std::mutex> lock = drain_.Drain(slot);
    if (!slot.is_attached) return;
    SlotThread<Traits> thread(slot, index, accounts_.signal());
    const PollVerdict verdict =
        provider.Poll(thread, std::get<index>(slot.states), clock_.MonotonicNs());
    bool is_extended = false;
    if (verdict.action == PollVerdict::Action::kExtendLast) {
      // If memory runs out, a new stack takes the weight.
      static_cast<void>(counters_.HasMemoryFor(
          [&] { is_extended = drain_.ExtendLast(slot, index, verdict.weight); }));
    }
    if (verdict.action != PollVerdict::Action::kNothing && !is_extended)
      thread.Request(verdict.weight, verdict.wants_cpu_clock);
    if constexpr (kSkipsIdleThreads<Provider>) {
      rounds_[index].idle_threads().Note(slot.channel->token.index, slot.attach_cpu_ns,
                                         thread.read_cpu_ns());
    }
  }

  ThreadRegistry<Traits>& registry_;
  LoadedCode<Traits>& code_;
  CollectorCounters& counters_;
  SlotAccounts<Traits>& accounts_;
  SlotDrain<Traits>& drain_;
  typename Traits::Clock clock_;
  RandomSource random_{static_cast<std::uint64_t>(clock_.MonotonicNs())};
  std::vector<Slot*> slots_;  // scratch
  std::array<PollRounds<Platform>, Traits::Providers::kCount> rounds_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
