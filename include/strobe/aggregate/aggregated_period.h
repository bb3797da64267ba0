// AggregatedPeriod: what Aggregator::Take returns, and how it becomes a Profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/life_table.h"
#include "strobe/aggregate/module_history.h"
#include "strobe/aggregate/moment_table.h"
#include "strobe/aggregate/row_table.h"
#include "strobe/aggregate/stack_trie.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/sample_context.h"

namespace strobe {

// A thread that used less than so many sampling periods may have too few samples to say what it
// did. One that used more has at least one with a timer, and, but for 0.7 %, at random instants.
inline constexpr std::int64_t kEnoughSamples = 5;

// A thread of a period; its index is the thread's key.
struct PeriodThread {
  ProfileThread thread;
  bool alive = false;  // at the period's end
};

// A thread, and what it was doing. A row whose labels are not the thread's alone refers to one.
struct PeriodContext {
  std::uint32_t thread = 0;  // its key
  SampleContext context;
};

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
// Made by Aggregator::Take. It is cheap to move, so that the exporter's thread can do the work of
// turning it into a Profile.
struct AggregatedPeriod {
  // If a row's labels have this bit, the other bits are an index into `contexts`. Otherwise the
  // labels are a thread's key.
  static constexpr std::uint32_t kContextBit = std::uint32_t{1} << 31;

  internal::StackTrie trie;
  RowTable rows{0};
  MomentTable moments{0};
  LifeTable lives;  // by the keys of the threads
  ModuleHistory modules;
  std::vector<PeriodThread> threads;
  std::deque<PeriodContext> contexts;
  std::vector<SpanNumber> slow_spans;  // in order
  const LabelTable* labels = nullptr;  // what the contexts refer to
  // By column: threads whose amount in the period is less are one with those of the same name.
  // Empty: each thread stands for itself.
  std::vector<std::int64_t> pooled_below;
  // From the monotonic clock, which the times here are of, to nanoseconds since 1970.
  std::int64_t unix_offset_ns = 0;
  bool zone_frames = false;  // see AddZoneFrames

  [[nodiscard]] std::size_t memory_bytes() const {
    return trie.memory_bytes() + rows.memory_bytes() + moments.memory_bytes() +
           lives.memory_bytes() + modules.memory_bytes() +
           threads.capacity() * sizeof(PeriodThread) + contexts.size() * sizeof(PeriodContext) +
           slow_spans.capacity() * sizeof(SpanNumber);
  }
};
#pragma GCC diagnostic pop

// Sets the modules, frames, stacks, label sets, threads, samples, values and moments of `profile`.
// The caller sets the rest.
// * modules: those of the newest map in its order, then older ones that some frame needs.
// * stacks: one tree over all module generations. A stack that ended early has its reason as the
//   pseudo-frame at its root.
// * threads: those with rows, those with a life, and those alive, in the order of their keys. A
//   thread without a life has neither times nor CPU time.
// * samples: distinct (stack, labels), in the order of their first sample. Samples whose values are
//   all zero are left out, and so are the frames, stacks and label sets that only they need.
//   Threads with the same id and name have the same labels, and so the same rows. The rows of spans
//   that were slow have the label kSlowLabel; those of other spans are one.
// * values: rows.value_count() per sample, none less than 0. A thread's [residual] is divided among
//   its other rows, whatever their labels, in proportion to their values. It stays where there are
//   none. A value less than 0 is part of the residual. If a thread's sum is less than 0, it becomes
//   0, and profile.stats.sums_cut grows by one.
//   Threads that were too short to be sampled enough, by period.pooled_below, are one with those of
//   the same name: the residuals of all are divided among the samples of all. So the rows of a name
//   add up to its clocks. Their samples are counted as they were taken, so the error rests on them.
// * moments: in order of time. The values of a moment are its part of what its row's values became,
//   in proportion: if all moments of a row were kept, they add up to the row.
// If period.zone_frames, stacks and frames are those that AddZoneFrames makes of these.
// Equal periods give equal profiles. Frees the contents of `period`. If memory runs out, `period`
// is unchanged, and the call can be repeated.
void FillProfile(AggregatedPeriod&& period, Profile& profile);

}  // namespace strobe
