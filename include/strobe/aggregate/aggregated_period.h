// What an Aggregator hands over at a period's end, and how it becomes a Profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "strobe/aggregate/module_history.h"
#include "strobe/aggregate/row_table.h"
#include "strobe/aggregate/stack_trie.h"
#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"

namespace strobe {

// A thread of a period; its index is the thread's key.
struct PeriodThread {
  ProfileThread thread;
  bool alive = false;  // at the period's end
};

// What the labels of a row stand for where they are not a thread's alone: a thread, and the labels
// that it had set.
struct PeriodContext {
  std::uint32_t thread = 0;  // its key
  LabelSet labels;
};

STROBE_HOLDS_HIDDEN_BEGIN
// Cheap to move, made by Aggregator::Take: the work of turning it into a Profile is left to the
// exporter's thread.
struct AggregatedPeriod {
  // The labels of a row with this bit are, without it, an index into `contexts`; without the bit,
  // they are a thread's key.
  static constexpr std::uint32_t kContextBit = std::uint32_t{1} << 31;

  internal::StackTrie trie;
  RowTable rows{0};
  ModuleHistory modules;
  std::vector<PeriodThread> threads;
  std::vector<PeriodContext> contexts;

  [[nodiscard]] std::size_t memory_bytes() const {
    return trie.memory_bytes() + rows.memory_bytes() + modules.memory_bytes() +
           threads.capacity() * sizeof(PeriodThread) + contexts.capacity() * sizeof(PeriodContext);
  }
};
STROBE_HOLDS_HIDDEN_END

// Sets the modules, frames, stacks, label sets, threads, samples and values of `profile`; the rest
// is the caller's.
// * modules: those of the newest map in its order, then older ones that some frame needs.
// * stacks: one tree over all module generations. A stack that ended early has its reason as the
//   pseudo-frame at its root.
// * threads: those with rows, and those alive, in the order of their keys.
// * samples: distinct (stack, labels), in the order of their first sample; those whose values are
//   all zero are left out, and so are the frames, stacks and label sets that nothing else needs.
//   Threads with the same id and name have the same labels, and so the same rows.
// * values: rows.value_count() a sample, none less than 0: what a thread's row has less than 0 is
//   taken from its other rows, whatever their labels. Where they have not enough, the thread's sum
//   becomes 0, and profile.stats.sums_cut is one more.
// Equal periods give equal profiles. Frees what `period` holds; where memory runs out, that stays
// as it is, for another try.
void FillProfile(AggregatedPeriod&& period, Profile& profile);

}  // namespace strobe
