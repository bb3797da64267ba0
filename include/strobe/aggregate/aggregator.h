// Aggregator: adds up the samples of a period in bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <vector>

#include "strobe/aggregate/aggregated_period.h"
#include "strobe/aggregate/bounded_table.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/life_table.h"
#include "strobe/aggregate/module_history.h"
#include "strobe/aggregate/moment_table.h"
#include "strobe/aggregate/overflows.h"
#include "strobe/aggregate/row_table.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/aggregate/stack_trie.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/stack.h"

namespace strobe {

// A stack as a difference from its thread's previous stack.
struct StackDelta {
  std::uint32_t generation = 0;  // of the modules that the addresses belong to
  StackEnd end = StackEnd::kComplete;
  std::size_t shared = 0;               // how many root frames are those of the thread's last stack
  std::span<const Address> leaf_first;  // the other frames, as WalkResult describes
  // How many leaf frames are left out of the row's stack; see SkippedFrames. If that leaves none,
  // the row is [lost]. The next stack shares with the whole stack.
  std::uint64_t skip = 0;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
// Collector thread only. Values that the memory limit has no room for are added to the thread's row
// of [overflow] and counted, so that the sums out equal the sums in. The only failure is
// std::bad_alloc: a call that throws it has changed nothing, and can be repeated.
class Aggregator {
 public:
  // The most threads that may end with rows in one period. Threads registered beyond this limit
  // share one key, and all their values go to [overflow].
  static constexpr std::size_t kMaxEndedThreads = 65536;

  // `value_count` values per row. The limit holds for one period's stacks, rows, modules and
  // threads while they are collected. Only data that is always kept may exceed the limit: some
  // 64 KiB, the threads themselves, the modules, and each thread's row of [overflow].
  Aggregator(std::size_t value_count, std::size_t memory_limit_bytes);

  // A key for a thread. It stays valid over periods until RemoveThread.
  std::uint32_t AddThread(std::uint64_t id, std::string name);
  // A key for the thread that has `key` in `other`. The thread's last stack is copied, too.
  std::uint32_t AddThreadOf(const Aggregator& other, std::uint32_t key);
  // Ends the use of `key`. The thread's rows and life of this period stay; if there are any, the
  // key is not reused before Take. Takes no memory.
  void RemoveThread(std::uint32_t key);

  // The modules that records with `generation` refer to; see ModuleHistory::Add.
  void SetModules(std::uint32_t generation, const ModuleMap& map);
  // Takes over the newest modules of `other`.
  void CopyModules(const Aggregator& other);
  // See ModuleHistory::WasUnloaded.
  [[nodiscard]] bool WasUnloaded(std::uint32_t generation, Address address) const {
    return modules_.WasUnloaded(generation, address);
  }

  // Adds `values` to the stack. The cost grows with the frames that are not shared. False if the
  // shared frames are unknown, because of the memory limit or without an Add before. The values
  // then go to [overflow], and the next stack should share nothing.
  //
  // Stacks share frames whatever their contexts. Contexts take at most half of the memory limit. If
  // there is no room for one more pair of a thread and a context, the row has the context without
  // its span, so that it counts as not slow, else the context kOverflowContext.
  //
  // The sample's time, if it is not 0, is kept as a moment, unless all values are 0.
  bool Add(std::uint32_t thread, const StackDelta& stack, std::span<const std::int64_t> values,
           const SampleContext& context = {}, std::int64_t time_ns = 0);
  // Adds `values` to the stack of the thread's last Add, even from an earlier period. Returns false
  // and adds nothing if there is no such stack, or if it had another context.
  bool ExtendLast(std::uint32_t thread, std::span<const std::int64_t> values,
                  const SampleContext& context = {}, std::int64_t time_ns = 0);
  // Forgets the thread's last stack, because a record of the thread could not be read: no later
  // call shares with it or adds to it.
  void ForgetLast(std::uint32_t thread);
  // Adds `values` to a stack that consists of a pseudo-frame.
  void AddPseudo(std::uint32_t thread, PseudoFrame frame, std::span<const std::int64_t> values);
  // Adds to the thread's life of this period. Returns false, and adds nothing, at the limit of
  // lives.
  [[nodiscard]] bool AddLife(std::uint32_t thread, const LifePart& part) {
    return thread != shared_key_ && lives_.Add(thread, part, budget_);
  }

  // Ends the period and returns it. Threads that live on keep their keys and last stacks. The
  // newest modules stay. `labels` has the sets that the contexts refer to, and outlives the period.
  // Samples in a span of `slow_spans`, or of those `under_way` that are slow, have the label
  // kSlowLabel.
  AggregatedPeriod Take(const LabelTable& labels = ProcessLabels(),
                        const SlowSpans& slow_spans = ProcessSlowSpans(),
                        std::span<const SpanNumber> under_way = {});
  // Whether a sample of this period was taken in a span with a threshold.
  [[nodiscard]] bool has_spans() const { return has_spans_; }
  // The sum of all rows of this period in `column`.
  [[nodiscard]] std::int64_t Sum(std::size_t column) const { return rows_.Sum(column); }

  [[nodiscard]] std::size_t memory_bytes() const { return budget_.used_bytes(); }
  // What the limits have kept out, since construction. Its owner counts the threads without a life.
  [[nodiscard]] const Overflows& overflows() const { return overflows_; }

 private:
  static constexpr std::uint32_t kNone = internal::StackTrie::kNone;

  enum class ThreadState : std::uint8_t { kFree, kAlive, kEnded };
  // Which limit a thread's last sample was beyond.
  enum class Limit : std::uint8_t { kNone, kStacks, kLabels, kSpans };
  struct Thread {
    std::uint64_t id = 0;
    std::string name;
    // The last stack's leaf in this period's trie, or the last node within the memory limit.
    std::uint32_t node = kNone;
    std::uint32_t generation = 0;
    std::uint16_t depth = 0;  // frames down to `node`
    StackEnd end = StackEnd::kComplete;
    ThreadState state : 2 = ThreadState::kFree;
    bool is_whole : 1 = false;  // `node` is the stack's leaf
    bool has_rows : 1 = false;
    bool was_sampled : 1 = false;
    Limit last_limit : 2 = Limit::kNone;
    bool last_is_cut : 1 = false;    // the stack of `last_row` lacks leaf frames
    std::uint32_t last_row = kNone;  // of the last Add or ExtendLast in this period
    std::uint64_t context = 0;       // DigestOf the last Add's
  };
  static_assert(sizeof(std::string) > 32 || sizeof(Thread) <= 64, "an idle thread is small");

  // With the labels that the context will take in the profile.
  static constexpr std::size_t kContextBytes = sizeof(PeriodContext) + 256;

  [[nodiscard]] std::span<const Address> PathTo(const internal::StackTrie& trie, std::uint32_t node,
                                                std::size_t depth);
  [[nodiscard]] AggregatedPeriod CopyForTake(const SlowSpans& slow_spans,
                                             std::span<const SpanNumber> under_way) const;
  void CountForgotten(const SlowSpans& slow_spans);
  void CarryOver(Thread& thread, const internal::StackTrie& trie);
  void Place(Thread& thread, std::span<const Address> leaf_first);
  void PlaceAnew(Thread& thread, std::span<const Address> leaf_first);
  [[nodiscard]] std::uint32_t LabelsOf(std::uint32_t key, const SampleContext& context);
  [[nodiscard]] std::uint32_t FindOrAddContext(const PeriodContext& context, Admission admission);
  [[nodiscard]] std::uint32_t RowNodeOf(const Thread& thread, std::uint64_t skip);
  [[nodiscard]] std::uint32_t PseudoNode(PseudoFrame frame);
  void AddToRow(std::uint32_t key, std::uint32_t node, std::span<const std::int64_t> values,
                const SampleContext& context, std::int64_t time_ns);
  void AddToLast(Thread& owner, std::span<const std::int64_t> values, std::int64_t time_ns);
  std::uint32_t PseudoRow(std::uint32_t key, PseudoFrame frame);
  void UpdateReserve();

  const std::size_t value_count_;
  MemoryBudget budget_;
  internal::StackTrie trie_;
  RowTable rows_;
  MomentTable moments_;
  LifeTable lives_;
  ModuleHistory modules_;
  std::deque<Thread> threads_;          // by key; a deque grows without a second copy
  std::deque<PeriodContext> contexts_;  // row labels are the index and kContextBit
  IdTable context_ids_;
  std::vector<std::uint32_t> free_keys_;
  bool has_spans_ = false;                                  // whether a context has one
  std::uint64_t spans_added_ = ProcessSlowSpans().added();  // at the last Take
  std::uint32_t shared_key_ = kNone;  // key of all threads beyond kMaxEndedThreads
  std::size_t ended_threads_ = 0;
  std::vector<Address> path_;  // scratch
  Overflows overflows_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
