// Session: what happens to samples between one Start and its Stop. It has no thread of its own. It
// is some 470 lines long because all that takes a slot's control mutex, and so must fit together,
// stands here.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "strobe/aggregate/aggregated_period.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/record.h"
#include "strobe/core/stats.h"
#include "strobe/platform/platform.h"
#include "strobe/provider/provider_list.h"
#include "strobe/runtime/code_registry.h"
#include "strobe/runtime/collector_counters.h"
#include "strobe/runtime/look_rounds.h"
#include "strobe/runtime/slot_thread.h"
#include "strobe/runtime/thread_registry.h"
#include "strobe/runtime/unwind_tables.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// How long whoever detaches a thread waits for a capture under way there. Longer means that the
// thread is stopped, say by a debugger.
inline constexpr std::int64_t kCaptureWaitNs = 100'000'000;

// How long a thread must have been idle, or a slot free, for its memory to be given back; up to
// twice this and a period.
inline constexpr std::int64_t kLongIdleNs = 10'000'000'000;

// Threads that wait for the collector to settle their accounts: as many count as a full ring.
inline constexpr double kManyEndedThreads = 256;

// Attach and Detach may be called from any thread; everything else by the collector, or by whoever
// ends the session after it has ended.
template <class Traits>
class Session {
 public:
  using Slot = ThreadSlot<Traits>;
  using Providers = typename Traits::Providers;
  using Platform = typename Traits::Platform;
  static constexpr std::size_t kCount = Providers::kCount;
  static constexpr std::size_t kValueCount = Providers::kValueCount;
  using Row = std::array<std::int64_t, kValueCount>;

  Session(const ProfilerOptions& options, ThreadRegistry<Traits>& registry,
          const CodeRegistry& code, CollectorCounters& counters, int signal)
      : registry_(registry),
        code_(code),
        counters_(counters),
        earlier_folded_(counters.folded.load(std::memory_order_relaxed)),
        signal_(signal),
        providers_(options.sampling),
        tables_(registry, counters),
        aggregator_(kValueCount, static_cast<std::size_t>(*options.collector.memory_bytes)),
        random_(static_cast<std::uint64_t>(clock_.MonotonicNs())) {
    providers_.ForEachEnabled([&](const auto& provider, auto index) {
      if (first_enabled_ == kCount) {
        first_enabled_ = index;
        period_ns_ = provider.period_ns();
      }
    });
    registry_.arena()->max_frames.store(static_cast<std::uint32_t>(*options.sampling.max_frames),
                                        std::memory_order_relaxed);
    RefreshModules();
    period_begin_ns_ = clock_.MonotonicNs();
    period_begin_unix_ns_ = clock_.UnixTimeNs();
  }

  [[nodiscard]] bool has_provider() const {
    return first_enabled_ < kCount;
  }  // enabled by the options
  [[nodiscard]] std::int64_t period_ns() const { return period_ns_; }

  // Begins to sample a live slot. Nothing happens where it is attached already. Where a capture of
  // an earlier session has not ended yet, which may write into the slot until it does, the thread
  // is attached at the first drain after its end.
  void Attach(Slot& slot) { AttachSince(slot, Clocks()); }

  // Ends that; credits each provider's residual.
  void Detach(Slot& slot) { static_cast<void>(DetachNow(slot)); }

  // Settles the thread's account and samples it anew, on the collector's thread: something about
  // it, or the signal, has changed. The new account begins where the old one ended.
  void Reattach(Slot& slot) {
    const std::optional<Clocks> ended = DetachNow(slot);
    if (!ended) return;
    Finish(slot);
    AttachSince(slot, *ended);
  }
  // The sets of labels whose numbers are the context words of slots.
  [[nodiscard]] LabelTable& labels() { return labels_; }
  [[nodiscard]] int signal() const { return signal_.load(std::memory_order_relaxed); }
  void set_signal(int signal) { signal_.store(signal, std::memory_order_relaxed); }

  // Moves every record into the aggregator and settles the accounts of threads that have ended.
  // Returns the fullest ring's fill, 0 to 1, or how near to kManyEndedThreads those threads were,
  // if that is more; 1 where it had to finish walks, whose records take up the rings.
  double Drain() {
    if (ModuleVersion() != module_version_) RefreshModules();
    if (has_postponed_.exchange(false, std::memory_order_relaxed)) Begin();
    double fill = 0;
    registry_.arena()->VisitMarked([&](Slot& slot) {
      fill = std::max(fill, static_cast<double>(slot.ring.used_bytes()) /
                                static_cast<double>(registry_.arena()->ring_bytes()));
      DrainWhole(slot);
    });
    if (std::exchange(has_deferred_, false)) fill = 1;
    const std::vector<Slot*> retired = registry_.CopyRetired();
    fill = std::max(fill, static_cast<double>(retired.size()) / kManyEndedThreads);
    for (Slot* slot : retired) Finish(*slot);
    if (!retired.empty()) registry_.ReclaimRetired(retired.size());
    tables_.Publish();
    counters_.drains.fetch_add(1, std::memory_order_relaxed);
    counters_.folded.store(earlier_folded_ + aggregator_.folded(), std::memory_order_relaxed);
    counters_.aggregator_bytes.store(aggregator_.memory_bytes(), std::memory_order_relaxed);
    return fill;
  }

  // Gives every provider whose round of looks is due its round; returns when the next is, or
  // INT64_MAX.
  std::int64_t Look(std::int64_t now_ns) {
    std::int64_t next_ns = INT64_MAX;
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      LookRounds<Platform>& rounds = look_rounds_[index];
      if (rounds.IsDue(now_ns)) LookAtAll(provider, index);
      if (rounds.IsOpen(now_ns) && !rounds.Plan(now_ns, provider.look_period_ns(random_))) {
        counters_.looks_put_off.fetch_add(1, std::memory_order_relaxed);
      }
      next_ns = std::min(next_ns, rounds.due_ns());
    });
    return next_ns;
  }

  // Begins, after the registry's BeginCollecting: attaches all threads that are registered. Those
  // that register later attach themselves.
  void Begin() {
    std::vector<Slot*> slots;
    registry_.CopyLive(slots);
    for (Slot* slot : slots) Attach(*slot);
  }

  // Ends: detaches every thread. From now on Attach does nothing. The collector may still be at
  // work.
  void End() {
    has_ended_.store(true, std::memory_order_seq_cst);
    std::vector<Slot*> slots;
    registry_.CopyLive(slots);
    for (Slot* slot : slots) Detach(*slot);
  }

  // After End, and after the collector has ended: settles all accounts.
  void FinishAll() {
    Drain();
    registry_.EndCollecting([this](Slot& slot) { Finish(slot); });
    tables_.Withdraw();
    registry_.DiscardAll();
  }

  // The period that ends now, without its stats. The aggregator goes on with the next.
  struct Period {
    AggregatedPeriod samples;
    std::int64_t time_ns = 0;
    std::int64_t duration_ns = 0;
  };
  Period TakePeriod() {
    const std::int64_t now_ns = clock_.MonotonicNs();
    VisitAtPeriodEnd(now_ns);
    Period period{.samples = aggregator_.Take(labels_),
                  .time_ns = period_begin_unix_ns_,
                  .duration_ns = now_ns - period_begin_ns_};
    period_begin_ns_ = now_ns;
    period_begin_unix_ns_ = clock_.UnixTimeNs();
    if (tables_.ShouldRetry())
      module_version_ = ~std::uint64_t{0};  // the next drain takes them for changed
    return period;
  }

  // How many columns the first enabled provider has.
  [[nodiscard]] std::size_t first_enabled_columns() const {
    return Providers::FirstColumn(first_enabled_ + 1) - Providers::FirstColumn(first_enabled_);
  }

  // The columns of the providers that are enabled, as indices into Providers::AllValueTypes().
  std::vector<std::size_t> EnabledColumns() {
    std::vector<std::size_t> columns;
    providers_.ForEachEnabled([&](const auto& /*provider*/, auto index) {
      for (std::size_t i = Providers::FirstColumn(index); i < Providers::FirstColumn(index + 1);
           ++i)
        columns.push_back(i);
    });
    return columns;
  }

 private:
  template <class Provider>
  static constexpr bool kSkipsSleepers = requires {
    Provider::kSkipsSleepers;
  };

  // What a thread's clocks say; -1 where they were not read.
  struct Clocks {
    std::int64_t monotonic_ns = -1;
    std::int64_t cpu_ns = -1;
  };

  void AttachSince(Slot& slot, const Clocks& since) {
    const std::lock_guard lock(ControlMutex(slot));
    if (slot.is_attached || slot.is_ending.load(std::memory_order_acquire) ||
        has_ended_.load(std::memory_order_seq_cst))
      return;
    if (slot.needs_finish) return;  // Reattach is at work there
    if (slot.is_capturing.load(std::memory_order_seq_cst)) {
      has_postponed_.store(true, std::memory_order_relaxed);
      return;
    }
    DropLateRecords(slot);
    ++slot.token.use;
    for (ProviderCell& cell : slot.cells) cell.Reset();
    for (auto& wants : slot.wants_cpu_clock) wants.store(false, std::memory_order_relaxed);
    slot.memo_is_stale.store(true, std::memory_order_relaxed);
    slot.attach_cpu_ns =
        since.cpu_ns >= 0 ? since.cpu_ns : Platform::ThreadCpuTimeNs(slot.thread_id);
    slot.was_timer_refused.store(false, std::memory_order_relaxed);
    slot.blocks_signal.store(HasSignal(slot.blocked_signals, signal()), std::memory_order_relaxed);
    slot.thread_key = Slot::kNoKey;
    slot.needs_finish = true;
    slot.is_attached = true;
    slot.is_active.store(true, std::memory_order_seq_cst);
    const std::int64_t now_ns = since.monotonic_ns >= 0 ? since.monotonic_ns : clock_.MonotonicNs();
    RandomSource random(static_cast<std::uint64_t>(now_ns) ^ slot.thread_id << 32 ^ slot.token.use);
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      SlotThread<Traits> thread(slot, index, signal());
      provider.Attach(thread, std::get<index>(slot.states), random, now_ns);
    });
  }

  // What they said then; nothing where the slot was not attached.
  std::optional<Clocks> DetachNow(Slot& slot) {
    const std::lock_guard lock(ControlMutex(slot));
    if (!slot.is_attached) return std::nullopt;
    slot.is_active.store(false, std::memory_order_seq_cst);
    Platform::StopTimer(slot.timer);
    WaitForCapture(slot);
    Clocks now{.monotonic_ns = clock_.MonotonicNs()};
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      SlotThread<Traits> thread(slot, index, signal(), slot.cells[index].Settle());
      slot.cells[index].residual =
          provider.Detach(thread, std::get<index>(slot.states), now.monotonic_ns);
      now.cpu_ns = std::max(now.cpu_ns, thread.read_cpu_ns());
    });
    slot.is_attached = false;
    return now;
  }

  std::mutex& ControlMutex(const Slot& slot) { return registry_.ControlMutex(slot); }
  void WaitForCapture(const Slot& slot) {
    if (slot.thread_id == Platform::CurrentThreadId()) return;
    if (!WaitUntilClear(slot.is_capturing, kCaptureWaitNs))
      counters_.waits_abandoned.fetch_add(1, std::memory_order_relaxed);
  }

  // What a capture has written after its session had settled the slot's account: the residual there
  // stands for it.
  void DropLateRecords(Slot& slot) {
    registry_.arena()->Unmark(slot);
    while (!slot.ring.Peek().empty()) slot.ring.Pop();
    slot.has_slices.store(false, std::memory_order_relaxed);
  }

  std::uint64_t ModuleVersion() const {
    return Platform::ModuleVersion() + code_.version();
  }  // both only grow

  void RefreshModules() {
    // The versions are read first: a change between the two is seen at the next drain.
    const std::uint64_t image_version = Platform::ModuleVersion();
    module_version_ = image_version + code_.version();
    if (module_generation_ == 0 || image_version != image_version_)
      modules_ = ModuleMap(Platform::Modules());
    image_version_ = image_version;
    code_.Join(modules_);
    aggregator_.SetModules(++module_generation_, modules_);
    registry_.arena()->module_generation.store(module_generation_, std::memory_order_relaxed);
    tables_.Update(modules_);
    counters_.module_refreshes.fetch_add(1, std::memory_order_relaxed);
  }

  std::uint32_t KeyOf(Slot& slot) {
    if (slot.thread_key == Slot::kNoKey)
      slot.thread_key = aggregator_.AddThread(slot.thread_id, slot.name);
    return slot.thread_key;
  }

  // The values that `weights` stand for.
  Row ValuesOf(const Slot& slot, std::span<const std::int64_t> weights) {
    Row row{};
    providers_.ForEachEnabled([&](const auto& provider, auto index) {
      if (weights[index] != 0)
        provider.AddWeight(weights[index], std::get<index>(slot.states), ColumnsOf(row, index));
    });
    return row;
  }

  static std::span<std::int64_t> ColumnsOf(Row& row, std::size_t index) {
    return std::span(row).subspan(Providers::FirstColumn(index), Providers::FirstColumn(index + 1) -
                                                                     Providers::FirstColumn(index));
  }

  void CountRated(const Row& row) {
    counters_.rated_ns.fetch_add(row[Providers::FirstColumn(first_enabled_ + 1) - 1],
                                 std::memory_order_relaxed);
  }

  // Moves all of the slot's records into the aggregator, and builds the tables that their walks
  // need. That may take its time, and needs the loader: so the slot's own thread, whose end waits
  // for the mutex, must not have to wait for it, and may hold the loader itself.
  std::unique_lock<std::mutex> DrainWhole(Slot& slot) {
    for (bool is_first = true;; is_first = false) {
      // A provider is promised that all calls for one thread follow each other: AddWeight must not
      // meet the thread's own Detach.
      std::unique_lock lock(ControlMutex(slot));
      // A mark may be an earlier session's.
      if (!slot.needs_finish || DrainSlot(slot)) return lock;
      lock.unlock();
      // Code that nobody knows of may have been loaded just now. Asked once, this ends however
      // often the modules change.
      if (is_first && ModuleVersion() != module_version_) RefreshModules();
      tables_.BuildMissing();
    }
  }

  // Moves the slot's records into the aggregator, up to one whose walk misses a table: false then.
  bool DrainSlot(Slot& slot) {
    const std::uint64_t corruptions = slot.ring.corruptions();
    for (std::span<const std::byte> record = slot.ring.Peek(); !record.empty();
         record = slot.ring.Peek()) {
      if (!AddRecord(slot, KeyOf(slot), record)) return false;
      slot.ring.Pop();
    }
    if (slot.ring.corruptions() != corruptions) PassOver(slot);
    if (slot.has_slices.load(std::memory_order_relaxed))
      slot.has_slices.store(false, std::memory_order_relaxed);
    return true;
  }

  // Something came out of the ring that no capture can have written. What later records share, they
  // may share with that.
  void PassOver(Slot& slot) {
    counters_.unreadable.fetch_add(1, std::memory_order_relaxed);
    aggregator_.ForgetLast(KeyOf(slot));
    slot.memo_is_stale.store(true, std::memory_order_relaxed);
  }

  // False as DrainSlot; nothing has been added then.
  bool AddRecord(Slot& slot, std::uint32_t key, std::span<const std::byte> record) {
    RecordView view;
    if (!ReadRecord(record, Providers::RecordedValueTypes(), view)) {
      PassOver(slot);
      return true;
    }
    StackDelta stack{view.header.module_generation, view.header.end, view.header.shared_count,
                     view.frames};
    if (!view.slice.empty()) {
      has_deferred_ = true;
      if (!tables_.Finish(view.slice, stack,
                          [&](Address pc) { return aggregator_.HasGone(stack.generation, pc); }))
        return false;
      if (std::ranges::all_of(view.amounts, [](std::int64_t amount) { return amount == 0; }))
        return true;  // see DropReason::kNoTable
      counters_.deferred_ends[static_cast<std::size_t>(stack.end)].fetch_add(
          1, std::memory_order_relaxed);
    }
    std::array<std::int64_t, kCount> weights{};
    for (std::size_t i = 0; i < kCount; ++i) {
      weights[i] = view.Amount(Providers::FirstColumn(i));
      slot.cells[i].Receive(weights[i]);
    }
    const Row row = ValuesOf(slot, weights);
    if (!aggregator_.Add(key, stack, row, view.context))
      slot.memo_is_stale.store(true, std::memory_order_relaxed);
    counters_.samples.fetch_add(1, std::memory_order_relaxed);
    counters_.rated_samples.fetch_add(weights[first_enabled_] != 0 ? 1 : 0,
                                      std::memory_order_relaxed);
    CountRated(row);
    return true;
  }

  bool ExtendLast(Slot& slot, std::size_t provider, std::int64_t weight) {
    if (!DrainSlot(slot)) return false;
    std::array<std::int64_t, kCount> weights{};
    weights[provider] = weight;
    const Row row = ValuesOf(slot, weights);
    if (!aggregator_.ExtendLast(KeyOf(slot), row, slot.context.load(std::memory_order_relaxed)))
      return false;
    slot.cells[provider].credited.fetch_add(weight, std::memory_order_relaxed);
    slot.cells[provider].Receive(weight);
    counters_.rated_samples.fetch_add(provider == first_enabled_ ? 1 : 0,
                                      std::memory_order_relaxed);
    CountRated(row);
    return true;
  }

  template <class Provider, class Index>
  void LookAtAll(Provider& provider, Index index) {
    const auto copy = [&](std::vector<Slot*>& slots) { registry_.CopyLive(slots); };
    const auto look_at = [&](Slot& slot) { LookAt(slot, provider, index); };
    if constexpr (kSkipsSleepers<Provider>) {
      look_rounds_[index].RunAwake(slots_, provider.period_ns(), copy, look_at);
    } else {
      look_rounds_[index].RunAll(slots_, copy, look_at);
    }
    if (has_deferred_) tables_.Publish();
  }

  template <class Provider, class Index>
  void LookAt(Slot& slot, Provider& provider, Index index) {
    // A thread whose stack waits for a table would be interrupted again, though it has not run.
    const std::unique_lock<std::mutex> lock = DrainWhole(slot);
    if (!slot.is_attached) return;
    SlotThread<Traits> thread(slot, index, signal());
    const PollVerdict verdict =
        provider.Look(thread, std::get<index>(slot.states), clock_.MonotonicNs());
    const bool is_extended = verdict.action == PollVerdict::Action::kExtendLast &&
                             ExtendLast(slot, index, verdict.weight);
    if (verdict.action != PollVerdict::Action::kNothing && !is_extended)
      thread.Request(verdict.weight, verdict.wants_cpu_clock);
    if constexpr (kSkipsSleepers<Provider>) {
      look_rounds_[index].sleepers().Note(slot.token.index, slot.attach_cpu_ns,
                                          thread.read_cpu_ns());
    }
  }

  // What a slot's account has not got of its rows: of what was credited; and of the clock's time.
  // Before the detachment, the second alone.
  std::pair<Row, Row> OutstandingOf(Slot& slot) {
    std::pair<Row, Row> rows{};
    providers_.ForEachEnabled([&](auto& provider, auto index) {
      const ProviderCell& cell = slot.cells[index];
      auto& state = std::get<index>(slot.states);
      const std::span<std::int64_t> residual = ColumnsOf(rows.second, index);
      if (!slot.is_attached) {
        if (cell.missing() != 0)
          provider.AddWeight(cell.missing(), state, ColumnsOf(rows.first, index));
        provider.AddResidual(cell.residual, residual);
      } else if constexpr (requires(SampledThread & thread) {
                             provider.Residual(thread, state, std::int64_t{});
                           }) {
        SlotThread<Traits> thread(slot, index, signal());
        if (cell.received != 0)
          provider.AddResidual(
              provider.Residual(thread, state, static_cast<std::int64_t>(cell.received)), residual);
      }
    });
    return rows;
  }

  void VisitAtPeriodEnd(std::int64_t now_ns) {
    const bool sees_to_memory = now_ns - memory_seen_to_ns_ >= kLongIdleNs;
    registry_.CopyAll(slots_);
    for (Slot* slot : slots_) {
      const std::lock_guard lock(ControlMutex(*slot));
      if (slot->needs_finish && slot->thread_key != Slot::kNoKey) HoldBackSurplus(*slot);
      if (sees_to_memory) DiscardIfIdle(*slot);
    }
    if (!sees_to_memory) return;
    registry_.DiscardIdle();
    memory_seen_to_ns_ = now_ns;
  }

  // Moves to the next period what the thread's rows say beyond its clock. A timer's first expiry
  // stands for a whole period, however soon it comes.
  void HoldBackSurplus(Slot& slot) {
    auto [surplus, residual] = OutstandingOf(slot);
    for (std::size_t i = 0; i < kValueCount; ++i) {
      const std::uint64_t outstanding =
          static_cast<std::uint64_t>(surplus[i]) + static_cast<std::uint64_t>(residual[i]);
      surplus[i] = std::max<std::int64_t>(static_cast<std::int64_t>(-outstanding), 0);
    }
    if (surplus != Row{}) aggregator_.HoldBack(slot.thread_key, surplus);
  }

  // A signal that comes just now is a late one: what it stands for goes into the residual.
  void DiscardIfIdle(Slot& slot) {
    if (!slot.is_attached || !SlotArena<Traits>::IsLongIdle(slot)) return;
    slot.is_active.store(false, std::memory_order_seq_cst);
    const bool is_idle =
        !slot.is_capturing.load(std::memory_order_seq_cst) &&
        slot.counters.captures.load(std::memory_order_relaxed) == slot.counters.seen_captures &&
        slot.ring.used_bytes() == 0;
    if (is_idle) registry_.arena()->Discard(slot);
    slot.is_active.store(true, std::memory_order_seq_cst);
  }

  // The last word on a slot's account: its records, what it was credited with and came in none of
  // them, and the residual.
  void Finish(Slot& slot) {
    if (!slot.needs_finish) return;
    // A mark that is left would send the collector to the slot while its next owner sets it up.
    registry_.arena()->Unmark(slot);
    while (!DrainSlot(slot)) tables_.BuildMissing();
    const std::uint32_t key = KeyOf(slot);
    const auto [lost, residual] = OutstandingOf(slot);
    if (lost != Row{}) aggregator_.AddPseudo(key, PseudoFrame::kLost, lost);
    if (residual != Row{}) aggregator_.AddPseudo(key, PseudoFrame::kResidual, residual);
    CountRated(lost);
    CountRated(residual);
    aggregator_.RemoveThread(key);
    slot.thread_key = Slot::kNoKey;
    for (LookRounds<Platform>& rounds : look_rounds_) rounds.sleepers().Forget(slot.token.index);
    const std::lock_guard lock(ControlMutex(slot));
    slot.needs_finish = false;
  }

  ThreadRegistry<Traits>& registry_;
  const CodeRegistry& code_;
  CollectorCounters& counters_;
  const std::uint64_t earlier_folded_;
  std::atomic<int> signal_;
  typename Traits::Clock clock_;
  Providers providers_;
  UnwindTables<Traits> tables_;
  Aggregator aggregator_;
  LabelTable labels_;  // the sets that threads' context words name
  RandomSource random_;
  std::atomic<bool> has_ended_{false};
  std::atomic<bool> has_postponed_{
      // A thread was not attached, because a capture of an earlier session is under way there.
      false};
  std::vector<Slot*> slots_;  // scratch
  std::array<LookRounds<Platform>, kCount> look_rounds_;
  bool has_deferred_ = false;
  std::size_t first_enabled_ = kCount;
  std::int64_t period_ns_ = 0;
  std::uint64_t module_version_ = 0;
  std::uint64_t image_version_ = 0;
  ModuleMap modules_;  // the loader's, as of image_version_, and generated code
  std::uint32_t module_generation_ = 0;
  std::int64_t period_begin_ns_ = 0;
  std::int64_t memory_seen_to_ns_ = 0;
  std::int64_t period_begin_unix_ns_ = 0;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
