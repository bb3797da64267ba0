// ThreadPoller: samples threads at random instants, and polls them, as the providers ask.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/recording_options.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/channel_drain.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/thread_accounts.h"
#include "strobe/runtime/polls/instant_rounds.h"
#include "strobe/runtime/polls/poll_rounds.h"
#include "strobe/runtime/polls/polled_stacks.h"
#include "strobe/runtime/threads/provider_view.h"
#include "strobe/runtime/threads/thread_probes.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of one session. Used by the collector.
template <class Traits>
class ThreadPoller {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // All arguments but the options must outlive this object.
  ThreadPoller(const SamplingOptions& options, ThreadRegistry<Traits>& registry,
               LoadedCode<Traits>& code, CollectorCounters& counters,
               ThreadAccounts<Traits>& accounts, ChannelDrain<Traits>& drain)
      : registry_(registry),
        code_(code),
        counters_(counters),
        accounts_(accounts),
        drain_(drain),
        rounds_(MakeRounds(*options.max_overhead, std::make_index_sequence<Providers::kCount>())) {
    for (std::size_t i = 0; i < Providers::kCount; ++i) periods_ns_[i] = accounts.period_ns(i);
  }

  // Runs the instants and poll rounds that are due. `since_wake` began when the calling thread
  // woke. Returns when the next one is due, or INT64_MAX if none is planned; then each wake-up of
  // the collector has to call this.
  std::int64_t Poll(const typename Platform::Instant& since_wake, std::int64_t now_ns) {
    std::int64_t instant_ns = INT64_MAX;
    std::int64_t round_ns = INT64_MAX;
    // An instant that is due comes first, because rounds take time. One that is only planned comes
    // after them: it may take the collector to another CPU.
    std::array<bool, Providers::kCount> has_run{};
    const auto run_instants = [&](bool only_due) {
      accounts_.providers().ForEachEnabled([&](auto& provider, auto index) {
        if constexpr (InstantProvider<std::remove_reference_t<decltype(provider)>>) {
          auto& rounds = std::get<index>(rounds_);
          if (has_run[index] || (only_due && !rounds.IsDue(now_ns))) return;
          has_run[index] = true;
          instant_ns = std::min(instant_ns, rounds.Run(provider, since_wake, now_ns));
        }
      });
    };
    run_instants(true);
    accounts_.providers().ForEachEnabled([&](auto& provider, auto index) {
      using Provider = std::remove_reference_t<decltype(provider)>;
      if constexpr (PolledProvider<Provider>) {
        auto& rounds = std::get<index>(rounds_);
        if (rounds.IsDue(now_ns)) PollAll(provider, index, since_wake);
        if (rounds.IsOpen(now_ns) && !rounds.Plan(now_ns, provider.poll_period_ns(), random_)) {
          counters_.polls_put_off.fetch_add(1, std::memory_order_relaxed);
        }
        round_ns = std::min(round_ns, rounds.due_ns());
      }
    });
    run_instants(false);
    if (round_ns < instant_ns) LeaveCpu();
    return std::min(instant_ns, round_ns);
  }

  // See InstantRounds.
  bool LeaveCpu() {
    bool has_left = false;
    std::apply([&](auto&... rounds) { ((has_left = LeaveCpuOf(rounds) || has_left), ...); },
               rounds_);
    return has_left;
  }

  // The recording in that place asks a provider, by its number in the list, for a sampling period;
  // 0 for none. Each rated provider has its own period, or the shortest that is asked for.
  // If memory runs out, it keeps the one before until the next call. Call Poll soon.
  void AskForPeriod(std::size_t place, std::size_t provider, std::int64_t period_ns) {
    asked_[place] = {.provider = provider, .period_ns = period_ns};
    accounts_.providers().ForEachEnabled([&](auto& rated, auto index) {
      if constexpr (RatedProvider<std::remove_reference_t<decltype(rated)>>) {
        std::int64_t shortest_ns = accounts_.period_ns(index);
        for (const AskedPeriod& asked : asked_) {
          if (asked.provider == index && asked.period_ns > 0)
            shortest_ns = std::min(shortest_ns, asked.period_ns);
        }
        if (shortest_ns == periods_ns_[index]) return;
        if (counters_.HasMemoryFor([&] { SetPeriod(rated, index, shortest_ns); }))
          periods_ns_[index] = shortest_ns;
      }
    });
  }

  // Forgets what is known of a thread whose registration has ended, or that is attached anew.
  void Forget(const Thread& thread) {
    probes_.Forget(thread);
    stacks_.Forget(thread);
    std::apply([&](auto&... rounds) { (ForgetIn(rounds, thread), ...); }, rounds_);
  }

 private:
  using Providers = typename Traits::Providers;

  struct AskedPeriod {
    std::size_t provider = 0;
    std::int64_t period_ns = 0;
  };
  struct NoRounds {};
  template <std::size_t kIndex>
  using RoundsOf =
      std::conditional_t<InstantProvider<typename Providers::template At<kIndex>>,
                         InstantRounds<Traits, kIndex>,
                         std::conditional_t<PolledProvider<typename Providers::template At<kIndex>>,
                                            PollRounds<Platform>, NoRounds>>;
  template <class Indices>
  struct AllRounds;
  template <std::size_t... kIndices>
  struct AllRounds<std::index_sequence<kIndices...>> {
    using Type = std::tuple<RoundsOf<kIndices>...>;
  };

  template <std::size_t kIndex>
  RoundsOf<kIndex> MakeRoundsOf(double max_overhead) {
    if constexpr (InstantProvider<typename Providers::template At<kIndex>>) {
      return {registry_, counters_, accounts_, probes_, clock_, max_overhead};
    } else {
      return {};
    }
  }
  template <std::size_t... kIndices>
  auto MakeRounds(double max_overhead, std::index_sequence<kIndices...> /*indices*/) {
    return std::tuple<RoundsOf<kIndices>...>(MakeRoundsOf<kIndices>(max_overhead)...);
  }

  template <class Rounds>
  static void ForgetIn(Rounds& rounds, const Thread& thread) {
    if constexpr (requires { rounds.Forget(thread); }) {
      rounds.Forget(thread);
    } else if constexpr (requires { rounds.Forget(thread.index()); }) {
      rounds.Forget(thread.index());
    }
  }

  template <class Rounds>
  static bool LeaveCpuOf(Rounds& rounds) {
    if constexpr (requires { rounds.LeaveCpu(); }) return rounds.LeaveCpu();
    return false;
  }

  template <class Provider, class Index>
  void SetPeriod(Provider& provider, Index index, std::int64_t period_ns) {
    registry_.CopyLive(threads_);  // this may throw, so it comes first
    provider.SetPeriod(period_ns);
    for (Thread* thread : threads_) {
      const std::lock_guard lock(registry_.ControlMutex(*thread));
      if (!thread->is_attached) continue;
      ProviderView<Traits> view(*thread, index, accounts_.signal());
      provider.Retime(view, std::get<index>(thread->states), random_);
    }
    auto& rounds = std::get<index>(rounds_);
    if constexpr (InstantProvider<Provider>) {
      rounds.SetPeriod(period_ns);
    } else if constexpr (PolledProvider<Provider>) {
      static_cast<void>(rounds.Plan(clock_.MonotonicNs(), period_ns, random_));
    }
  }

  template <class Provider, class Index>
  void PollAll(Provider& provider, Index index, const typename Platform::Instant& since_wake) {
    // Walks from outside go by the modules as they are now.
    if constexpr (ObservesWaits<Platform>) code_.RefreshIfChanged(drain_.intake());
    const auto list = [&](std::vector<Thread*>& threads) { registry_.CopyLive(threads); };
    std::get<index>(rounds_).RunAll(threads_, list, [&](Thread& thread, std::int64_t known_cpu_ns) {
      PollThread(thread, provider, index, known_cpu_ns, since_wake);
    });
    if (stacks_.TakeBuilt() || drain_.has_deferred()) code_.Publish();
  }

  template <class Provider, class Index>
  void PollThread(Thread& thread, Provider& provider, Index index, std::int64_t known_cpu_ns,
                  const typename Platform::Instant& since_wake) {
    std::unique_lock lock(registry_.ControlMutex(thread));
    if (!thread.is_attached) return;
    ProviderView<Traits> view(thread, index, accounts_.signal(), &probes_.Of(thread));
    const std::int64_t weight =
        provider.Poll(view, std::get<index>(thread.states), clock_.MonotonicNs());
    // The time of a thread that blocks the signal is not divided: its waits alone say little.
    if (weight == 0 || thread.blocks_signal.load(std::memory_order_relaxed)) return;
    const std::int64_t cpu_ns = stacks_.Add({.thread = thread,
                                             .lock = lock,
                                             .view = view,
                                             .provider = index,
                                             .weight = weight,
                                             .since_wake = since_wake},
                                            known_cpu_ns);
    if (cpu_ns != known_cpu_ns)
      std::get<index>(rounds_).Note(thread.index(), thread.attach_cpu_ns, cpu_ns);
  }

  ThreadRegistry<Traits>& registry_;
  LoadedCode<Traits>& code_;
  CollectorCounters& counters_;
  ThreadAccounts<Traits>& accounts_;
  ChannelDrain<Traits>& drain_;
  typename Traits::Clock clock_;
  RandomSource random_{static_cast<std::uint64_t>(clock_.MonotonicNs())};
  std::vector<Thread*> threads_;                              // scratch
  std::array<AskedPeriod, kMaxRecordings> asked_;             // by the recordings' places
  std::array<std::int64_t, Providers::kCount> periods_ns_{};  // now
  ThreadProbes<Traits> probes_;
  PolledStacks<Traits> stacks_{registry_, code_, counters_, drain_, probes_};
  typename AllRounds<std::make_index_sequence<Providers::kCount>>::Type rounds_;
};

}  // namespace internal
}  // namespace strobe
