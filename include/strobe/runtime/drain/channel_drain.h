// ChannelDrain: moves the records in threads' rings into the intake, and counts them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/record.h"
#include "strobe/core/sample_context.h"
#include "strobe/runtime/capture/record_draft.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/drain/kept_stacks.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/drain/sample_intake.h"
#include "strobe/runtime/drain/thread_accounts.h"
#include "strobe/runtime/drain/walk_finisher.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The thread that profiles name for the events of threads that are not registered.
inline constexpr const char* kUnregisteredThreads = "[unregistered thread]";

// Used by the collector, or, after the collector has ended, by the thread that ends the session.
template <class Traits>
class ChannelDrain {
 public:
  using Thread = RegisteredThread<Traits>;
  using Providers = typename Traits::Providers;
  using Platform = typename Traits::Platform;
  using Row = typename ThreadAccounts<Traits>::Row;

  ChannelDrain(const CollectorOptions& options, ThreadRegistry<Traits>& registry,
               LoadedCode<Traits>& code, CollectorCounters& counters,
               ThreadAccounts<Traits>& accounts, const Recording::Time& begin)
      : registry_(registry),
        code_(code),
        counters_(counters),
        accounts_(accounts),
        intake_(Providers::Layout(), IndicesOf(EnabledColumns(accounts.providers())),
                static_cast<std::size_t>(*options.memory_bytes), begin),
        copy_(AdoptsChannels<Platform> ? registry.arena()->ring_bytes() / sizeof(std::uint64_t)
                                       : 0) {
    code_.Begin(
        registry.arena()->code(), [&registry] { return registry.IsCapturing(); }, intake_);
  }

  [[nodiscard]] SampleIntake& intake() { return intake_; }
  [[nodiscard]] KeptStacks& kept_stacks() { return kept_stacks_; }

  // True if walks were finished since the last call of TakeDeferred.
  [[nodiscard]] bool has_deferred() const { return has_deferred_; }
  bool TakeDeferred() { return std::exchange(has_deferred_, false); }

  // Moves all of the thread's records into the intake, and builds the tables that their walks need.
  // Returns with the thread's control mutex held, but releases it while building. Building takes
  // long and needs the loader's lock. The thread itself may hold that lock while the end of
  // its registration waits for the mutex.
  std::unique_lock<std::mutex> Drain(Thread& thread) {
    for (bool is_first = true;; is_first = false) {
      // All calls of a provider for one thread are serialized: AddWeight must not run during the
      // thread's own Detach.
      std::unique_lock lock(registry_.ControlMutex(thread));
      // The mark may be left from an earlier session.
      if (!thread.needs_finish) return lock;
      const std::optional<Address> missing_pc = DrainThread(thread);
      if (!missing_pc) return lock;
      lock.unlock();
      // Unknown code may have been loaded just now. One refresh only, so that the loop ends however
      // often the modules change.
      if (is_first) code_.RefreshIfChanged(intake_);
      code_.Build(*missing_pc);
    }
  }

  // These two add a weight of a polled provider to a stack without a record. If the thread waits
  // there, the WaitProviders of that provider have the same weight. The ring must be empty: call
  // them after a Drain, of a thread that has not run since.
  //
  // Adds it to the thread's last stack. Returns false, and adds nothing, if there is no such stack,
  // or the thread has set other labels since.
  bool ExtendLast(Thread& thread, std::size_t provider, std::int64_t weight, bool waits = true) {
    const SampleIntake::Values amounts = AmountsOf(provider, weight, waits);
    if (!intake_.ExtendLast(KeyOf(thread), amounts, ContextOf(thread),
                            SampleTimeNs(*registry_.arena())))
      return false;
    Receive(thread, provider, amounts, amounts);
    return true;
  }
  // Adds it to a whole stack that the thread waits at, leaf first. The thread's next record must
  // share nothing: memo_is_stale must be set.
  void AddStack(Thread& thread, std::size_t provider, std::int64_t weight, StackEnd end,
                std::span<const Address> frames) {
    const SampleIntake::Values amounts = AmountsOf(provider, weight, /*waits=*/true);
    const SampleIntake::Values row =
        intake_.AddStack(KeyOf(thread),
                         {.generation = code_.generation(),
                          .end = end,
                          .shared = 0,
                          .leaf_first = frames,
                          .skip = 0},
                         amounts, ContextOf(thread), SampleTimeNs(*registry_.arena()));
    ++thread.life_samples;
    Receive(thread, provider, amounts, row);
  }

  // Settles a detached thread's account: adds its records, the credit that none of them brought,
  // and the residual.
  void Finish(Thread& thread) {
    if (!thread.needs_finish) return;
    // A mark that is left would lead the collector to the thread while its next owner sets it up.
    registry_.arena()->Unmark(thread.index());
    while (const std::optional<Address> missing_pc = DrainThread(thread)) code_.Build(*missing_pc);
    const std::uint32_t key = KeyOf(thread);
    // Memory may run out in each call, so each addition is noted at once.
    const Row lost = accounts_.MissingOf(thread);
    if (lost != Row{}) intake_.AddPseudo(key, PseudoFrame::kLost, lost);
    for (ProviderAccount& account : thread.accounts) account.Receive(account.missing());
    CountMeasured(lost);
    AddUnsettled(thread);
    CloseAccount(thread);
  }

  // Settles the account of an attached thread, as far as its records have been drained: adds what
  // got no record, the residual, and what is new of the thread's life.
  void Settle(Thread& thread) { AddUnsettled(thread); }

  // Drops the rest of the account, and counts it. Call it if memory runs out in Finish, and there
  // is no later call.
  void Drop(Thread& thread) {
    constexpr ValueLayout kLayout = Providers::Layout();
    const std::size_t shown = accounts_.shown_column();
    std::uint64_t records = 0;
    std::uint64_t amount = 0;
    std::size_t left_bytes = registry_.UsedBytes(thread);
    for (std::span<const std::byte> record = PeekRecord(thread); !record.empty() && left_bytes > 0;
         record = PeekRecord(thread)) {
      left_bytes -= std::min(left_bytes, record.size());
      RecordView view;
      if (ReadRecord(record, kLayout.recorded, view)) {
        Receive(thread, view);
        amount += static_cast<std::uint64_t>(view.Amount(shown));
      }
      ++records;
      thread.channel->ring.Pop();
    }
    for (const Row& row :
         {accounts_.MissingOf(thread), accounts_.LostOf(thread), accounts_.ResidualOf(thread)})
      amount += static_cast<std::uint64_t>(row[shown]);
    counters_.no_memory.fetch_add(records, std::memory_order_relaxed);
    counters_.amount_dropped.fetch_add(static_cast<std::int64_t>(amount),
                                       std::memory_order_relaxed);
    CloseAccount(thread);
  }

 private:
  void AddUnsettled(Thread& thread) {
    if (const Row lost = accounts_.LostOf(thread); lost != Row{}) {
      intake_.AddPseudo(KeyOf(thread), PseudoFrame::kLost, lost);
      accounts_.NoteLost(thread, lost);
      CountMeasured(lost);
    }
    if (thread.is_shared) return;  // no thread of the program's has its clocks and its life
    const auto now = accounts_.ReadClocks(thread);
    if (const Row residual = accounts_.ResidualOf(thread, now); residual != Row{}) {
      intake_.AddPseudo(KeyOf(thread), PseudoFrame::kResidual, residual);
      accounts_.NoteSettled(thread, residual);
      CountMeasured(residual);
    }
    const LifePart life = accounts_.LifeOf(thread, now);
    intake_.AddLife(KeyOf(thread), life);
    accounts_.NoteSettled(thread, life);
    counters_.registered_cpu_ns.fetch_add(std::max<std::int64_t>(life.cpu_ns, 0),
                                          std::memory_order_relaxed);
  }

  void CloseAccount(Thread& thread) {
    if (thread.thread_key != Thread::kNoKey) intake_.RemoveThread(thread.thread_key);
    thread.thread_key = Thread::kNoKey;
    const std::lock_guard lock(registry_.ControlMutex(thread));
    thread.needs_finish = false;
  }

  std::uint32_t KeyOf(Thread& thread) {
    if (thread.thread_key == Thread::kNoKey) {
      thread.thread_key = thread.is_shared ? intake_.AddThread(0, kUnregisteredThreads)
                                           : intake_.AddThread(thread.thread_id(), thread.name);
    }
    return thread.thread_key;
  }

  void CountMeasured(std::span<const std::int64_t> row) {
    counters_.measured_ns.fetch_add(row[accounts_.shown_column()], std::memory_order_relaxed);
  }
  void CountMeasuredSample(bool is_measured) {
    if (is_measured) counters_.measured_samples.fetch_add(1, std::memory_order_relaxed);
  }

  // Moves the thread's records into the intake, up to one whose walk lacks a table. Returns the
  // address of the code whose table is missing. What is recorded meanwhile may be left to the next
  // call: the calling thread itself allocates, and may thus record samples.
  std::optional<Address> DrainThread(Thread& thread) {
    typename Traits::Ring& ring = thread.channel->ring;
    const std::uint64_t corruptions = ring.corruptions();
    std::size_t left_bytes = registry_.UsedBytes(thread);
    for (std::span<const std::byte> record = PeekRecord(thread); !record.empty() && left_bytes > 0;
         record = PeekRecord(thread)) {
      left_bytes -= std::min(left_bytes, record.size());
      if (const std::optional<Address> missing_pc = AddRecord(thread, record)) return missing_pc;
      ring.Pop();
    }
    if (thread.channel->ring.corruptions() != corruptions) SkipCorrupt(thread);
    if (thread.channel->has_slices.load(std::memory_order_relaxed))
      thread.channel->has_slices.store(false, std::memory_order_relaxed);
    return std::nullopt;
  }

  // The oldest record in the thread's ring. What another process may write is copied, so that the
  // bytes that were checked are those that are used.
  std::span<const std::byte> PeekRecord(Thread& thread) {
    if constexpr (AdoptsChannels<Platform>) {
      if (!Platform::HasArea()) return {};
    }
    const std::span<const std::byte> record = registry_.PeekRecord(thread);
    if constexpr (AdoptsChannels<Platform>) {
      if (!record.empty()) std::memcpy(copy_.data(), record.data(), record.size());
      return std::as_bytes(std::span(copy_)).first(record.size());
    }
    return record;
  }

  static SampleContext ContextOf(const Thread& thread) {
    return thread.channel->context.Read().In(ProcessContext::LabelsOfProgram());
  }

  // The amounts, by value type, of a weight that a poll has given to a thread.
  SampleIntake::Values AmountsOf(std::size_t provider, std::int64_t weight, bool waits) {
    SampleIntake::Values amounts{};
    amounts[Providers::ShownColumn(provider)] = weight;
    accounts_.VisitWaitColumns([&](std::size_t column, std::size_t polled) {
      if (waits && polled == Providers::ShownColumn(provider)) amounts[column] = weight;
    });
    return amounts;
  }
  static void ReceiveAmounts(Thread& thread, const auto& amount_of) {
    constexpr auto kColumns = Providers::AccountColumns();
    for (std::size_t i = 0; i < kColumns.size(); ++i)
      thread.accounts[i].Receive(amount_of(kColumns[i]));
  }
  static void Receive(Thread& thread, const RecordView& record) {
    ReceiveAmounts(thread, [&](std::size_t column) { return record.Amount(column); });
  }
  // Counts amounts that no record has brought: they have become `row`.
  void Receive(Thread& thread, std::size_t provider, const SampleIntake::Values& amounts,
               const SampleIntake::Values& row) {
    thread.channel->cells[Providers::FirstCell(provider)].credited.fetch_add(
        amounts[Providers::ShownColumn(provider)], std::memory_order_relaxed);
    ReceiveAmounts(thread, [&](std::size_t column) { return amounts[column]; });
    CountMeasuredSample(provider == accounts_.first_enabled());
    CountMeasured(row);
  }
  // If the record serves the request of a poll that found the thread waiting, adds the poll's
  // weight for the WaitProviders. Without memory for that, other stacks have a larger share.
  void AddInterruptedWait(Thread& thread, const RecordView& record) {
    if (!thread.is_wait_interrupted) return;
    SampleIntake::Values amounts{};
    accounts_.VisitWaitColumns(
        [&](std::size_t column, std::size_t polled) { amounts[column] = record.Amount(polled); });
    if (amounts == SampleIntake::Values{}) return;
    thread.is_wait_interrupted = false;
    bool is_added = false;
    static_cast<void>(counters_.HasMemoryFor([&] {
      is_added = intake_.ExtendLast(KeyOf(thread), amounts, record.context, record.time_ns);
    }));
    if (is_added) ReceiveAmounts(thread, [&](std::size_t column) { return amounts[column]; });
  }

  // Skips a part of the ring that no capture can have written. Later records may share frames with
  // it, so the thread's last stack is forgotten.
  void SkipCorrupt(Thread& thread) {
    counters_.unreadable.fetch_add(1, std::memory_order_relaxed);
    intake_.ForgetLast(KeyOf(thread));
    thread.channel->memo_is_stale.store(true, std::memory_order_relaxed);
  }

  // Finishes a walk of code of which a part has been unloaded. Tables are built here at once: that
  // needs neither the loader nor, of what has gone, memory of the program.
  std::optional<Address> FinishUnloaded(std::span<const std::byte> slice, StackDelta& stack) {
    const std::uint32_t generation = stack.generation;
    // Where another module has been loaded since, the record may be of either.
    const auto has_gone = [&](Address pc) {
      return intake_.recorder().WasUnloaded(generation, pc) &&
             (!code_.HasUnloadedAt(generation, pc) || code_.modules().Find(pc).has_value());
    };
    std::optional<Address> missing_pc;
    do {
      missing_pc = finisher_.Finish(code_.TablesOf(generation).get(), slice,
                                    registry_.arena()->max_frames.load(std::memory_order_relaxed),
                                    has_gone, stack);
      if (missing_pc) code_.BuildOf(generation, *missing_pc);
    } while (missing_pc);
    return std::nullopt;
  }

  // Finishes the walk of a record; see SampleIntake::Add. Where a StackTable keeps the stack, the
  // levels get all of it.
  std::optional<Address> FinishStack(std::span<const std::byte> slice, StackDelta& stack) {
    const std::optional<Address> missing_pc = FinishWalkOf(slice, stack);
    if constexpr (Providers::kHasLevels) {
      const std::uint64_t number = missing_pc ? 0 : KeptNumberOf(slice);
      if (number != 0) {
        const std::size_t count = stack.leaf_first.size();
        kept_stacks_.Add(number,
                         stack.leaf_first.subspan(SkippedFrames(stack.skip, count, stack.end)),
                         stack.end);
      }
    }
    return missing_pc;
  }
  std::optional<Address> FinishWalkOf(std::span<const std::byte> slice, StackDelta& stack) {
    has_deferred_ = true;
    if constexpr (LoadedCode<Traits>::kHasTables) {
      if (code_.HasUnloaded(stack.generation)) return FinishUnloaded(slice, stack);
    }
    const auto has_gone = [&](Address pc) {
      return intake_.recorder().WasUnloaded(stack.generation, pc);
    };
    return finisher_.Finish(code_.tables(), slice,
                            registry_.arena()->max_frames.load(std::memory_order_relaxed), has_gone,
                            stack);
  }

  // Adds a record, or returns an address as DrainThread does. Adds nothing then, and nothing if
  // memory runs out.
  std::optional<Address> AddRecord(Thread& thread, std::span<const std::byte> bytes) {
    const SampleIntake::Result taken = intake_.Add(
        KeyOf(thread), bytes, [this](std::span<const std::byte> slice, StackDelta& stack) {
          return FinishStack(slice, stack);
        });
    switch (taken.outcome) {
      case SampleIntake::Outcome::kMissingTable: return taken.missing_pc;
      case SampleIntake::Outcome::kUnreadable: SkipCorrupt(thread); return std::nullopt;
      case SampleIntake::Outcome::kOverflow:
        thread.channel->memo_is_stale.store(true, std::memory_order_relaxed);
        break;
      case SampleIntake::Outcome::kAdded: break;
    }
    if (!taken.record.slice.empty()) {
      counters_.deferred_ends[static_cast<std::size_t>(taken.end)].fetch_add(
          1, std::memory_order_relaxed);
    }
    Receive(thread, taken.record);
    if constexpr (Providers::kFindsWaits) AddInterruptedWait(thread, taken.record);
    counters_.samples.fetch_add(1, std::memory_order_relaxed);
    ++thread.life_samples;
    thread.has_new_records = true;
    CountMeasuredSample(taken.record.Amount(accounts_.shown_column()) != 0);
    CountMeasured(taken.values);
    return std::nullopt;
  }

  ThreadRegistry<Traits>& registry_;
  LoadedCode<Traits>& code_;
  CollectorCounters& counters_;
  ThreadAccounts<Traits>& accounts_;
  WalkFinisher<typename Traits::Unwinder> finisher_;
  SampleIntake intake_;
  KeptStacks kept_stacks_;
  std::vector<std::uint64_t> copy_;  // of a record, in memory of this process alone; else empty
  bool has_deferred_ = false;
};

}  // namespace internal
}  // namespace strobe
