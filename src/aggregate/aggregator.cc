#include "strobe/aggregate/aggregator.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "strobe/base/memory_guard.h"

namespace strobe {

using internal::StackTrie;

namespace {

// Tells contexts apart. It is exact for labels alone. Two traces have the same digest with a
// probability of 2^-63.
std::uint64_t DigestOf(const SampleContext& context) {
  if (context.trace.empty()) return context.word;
  const TraceContext& trace = context.trace;
  return HashPair(HashPair(context.word, trace.trace_id),
                  HashPair(trace.span_id, trace.local_root_span_id)) |
         std::uint64_t{1} << 63;
}

}  // namespace

Aggregator::Aggregator(std::size_t value_count, std::size_t memory_limit_bytes)
    : value_count_(value_count),
      budget_(memory_limit_bytes),
      rows_(value_count),
      moments_(value_count) {
  budget_.Take(trie_.memory_bytes());
}

std::uint32_t Aggregator::AddThread(std::uint64_t id, std::string name) {
  if (shared_key_ != kNone && ended_threads_ >= kMaxEndedThreads) return shared_key_;
  std::uint32_t key = 0;
  if (!free_keys_.empty()) {
    key = free_keys_.back();
    free_keys_.pop_back();
  } else {
    key = static_cast<std::uint32_t>(threads_.size());
    // Reserves room for all keys, so that RemoveThread takes no memory.
    if (free_keys_.capacity() == key) free_keys_.reserve(std::max<std::size_t>(2 * key, 16));
    threads_.emplace_back();
    budget_.Take(sizeof(Thread));
    UpdateReserve();
  }
  if (ended_threads_ >= kMaxEndedThreads) {
    shared_key_ = key;
    id = 0;
    name = std::string(PseudoFrameName(PseudoFrame::kOverflow));
  }
  Thread& thread = threads_[key];
  thread = Thread();
  thread.id = id;
  thread.name = std::move(name);
  thread.state = ThreadState::kAlive;
  return key;
}

std::uint32_t Aggregator::AddThreadOf(const Aggregator& other, std::uint32_t key) {
  const Thread& source = other.threads_[key];
  const std::uint32_t own = AddThread(source.id, source.name);
  Thread& thread = threads_[own];
  thread.node = source.node;
  thread.generation = source.generation;
  thread.depth = source.depth;
  thread.end = source.end;
  thread.was_sampled = source.was_sampled;
  thread.context = source.context;
  CarryOver(thread, other.trie_);
  thread.is_whole = thread.is_whole && source.is_whole;
  return own;
}

void Aggregator::RemoveThread(std::uint32_t key) {
  Thread& thread = threads_[key];
  if (key == shared_key_ || thread.state != ThreadState::kAlive) return;
  if (thread.has_rows || lives_.Find(key) != nullptr) {
    thread.state = ThreadState::kEnded;
    ended_threads_ += thread.has_rows ? 1 : 0;
  } else {
    thread = Thread();
    free_keys_.push_back(key);
  }
}

void Aggregator::SetModules(std::uint32_t generation, const ModuleMap& map) {
  const std::size_t before_bytes = modules_.memory_bytes();
  modules_.Add(generation, map);
  budget_.GiveBack(before_bytes);
  budget_.Take(modules_.memory_bytes());
}

void Aggregator::CopyModules(const Aggregator& other) {
  const std::size_t before_bytes = modules_.memory_bytes();
  modules_ = other.modules_;
  modules_.KeepNewest();
  budget_.GiveBack(before_bytes);
  budget_.Take(modules_.memory_bytes());
}

bool Aggregator::Add(std::uint32_t thread, const StackDelta& stack,
                     std::span<const std::int64_t> values, const SampleContext& context,
                     std::int64_t time_ns) {
  Thread& owner = threads_[thread];
  path_.reserve(owner.depth);  // PathTo must not throw once the thread's stack changes
  owner.was_sampled = true;
  const std::uint64_t digest = DigestOf(context);
  const bool same_context = std::exchange(owner.context, digest) == digest;
  if (thread == shared_key_) {
    AddToRow(thread, kNone, values, {}, time_ns);
    return true;
  }
  if (stack.shared > owner.depth) {
    owner.is_whole = false;
    AddToRow(thread, kNone, values, context, time_ns);
    return false;
  }
  // A stack without any frame is shown as a broken one.
  const StackEnd end =
      stack.shared == 0 && stack.leaf_first.empty() && stack.end == StackEnd::kComplete
          ? StackEnd::kBroken
          : stack.end;
  const bool same_root =
      stack.shared > 0 && owner.end == end &&
      (owner.generation == stack.generation ||
       modules_.Canonical(owner.generation) == modules_.Canonical(stack.generation));
  owner.generation = stack.generation;
  owner.end = end;
  if (same_root) {
    if (same_context && stack.leaf_first.empty() && stack.shared == owner.depth && owner.is_whole &&
        owner.last_row != kNone && stack.skip == 0 && !owner.last_is_cut) {
      AddToLast(owner, values, time_ns);
      return true;
    }
    for (; owner.depth > stack.shared; --owner.depth) owner.node = trie_[owner.node].parent;
    Place(owner, stack.leaf_first);
  } else if (stack.shared == 0) {
    PlaceAnew(owner, stack.leaf_first);
  } else {
    for (; owner.depth > stack.shared; --owner.depth) owner.node = trie_[owner.node].parent;
    PlaceAnew(owner, PathTo(trie_, owner.node, owner.depth));
    if (owner.is_whole) Place(owner, stack.leaf_first);
  }
  AddToRow(thread, owner.is_whole ? RowNodeOf(owner, stack.skip) : kNone, values, context, time_ns);
  owner.last_is_cut = stack.skip != 0;
  return true;
}

bool Aggregator::ExtendLast(std::uint32_t thread, std::span<const std::int64_t> values,
                            const SampleContext& context, std::int64_t time_ns) {
  Thread& owner = threads_[thread];
  if (!owner.was_sampled || (owner.context != DigestOf(context) && thread != shared_key_))
    return false;
  if (owner.last_row != kNone && !owner.last_is_cut) {
    AddToLast(owner, values, time_ns);
  } else {
    AddToRow(thread, owner.is_whole ? owner.node : kNone, values, context, time_ns);
  }
  return true;
}

void Aggregator::ForgetLast(std::uint32_t thread) {
  Thread& owner = threads_[thread];
  owner.node = kNone;
  owner.depth = 0;
  owner.is_whole = false;
  owner.was_sampled = false;
  owner.last_row = kNone;
}

void Aggregator::AddPseudo(std::uint32_t thread, PseudoFrame frame,
                           std::span<const std::int64_t> values) {
  rows_.Add(PseudoRow(thread, frame), values);
}

// Copies the part of the period that must be copied, which takes memory. The trie, the rows, and
// the names of threads that have ended can be moved later.
AggregatedPeriod Aggregator::CopyForTake(const SlowSpans& slow_spans,
                                         std::span<const SpanNumber> under_way) const {
  AggregatedPeriod period;
  if (has_spans_) period.slow_spans = slow_spans.Sorted(under_way);
  period.modules = modules_;
  period.threads.resize(threads_.size());
  for (std::uint32_t key = 0; key < threads_.size(); ++key) {
    const Thread& thread = threads_[key];
    PeriodThread& copy = period.threads[key];
    copy.alive = thread.state == ThreadState::kAlive && key != shared_key_;
    copy.thread.id = thread.id;
    if (thread.state == ThreadState::kAlive) copy.thread.name = thread.name;
  }
  return period;
}

// Counts the slow spans of this period that the log has forgotten.
void Aggregator::CountForgotten(const SlowSpans& slow_spans) {
  const std::uint64_t added = slow_spans.added() - std::exchange(spans_added_, slow_spans.added());
  if (has_spans_ && added > SlowSpans::kMaxSpans) overflows_.spans += added - SlowSpans::kMaxSpans;
}

// Puts the thread's last stack from `trie` into the new period. If memory runs out, the stack is
// forgotten: the thread's next sample is [overflow] if it shares frames with this one.
void Aggregator::CarryOver(Thread& thread, const StackTrie& trie) {
  if (thread.node == kNone) return;
  const bool is_placed =
      internal::HasMemoryFor([&] { PlaceAnew(thread, PathTo(trie, thread.node, thread.depth)); });
  if (is_placed) return;
  thread.node = kNone;
  thread.depth = 0;
  thread.is_whole = false;
}

AggregatedPeriod Aggregator::Take(const LabelTable& labels, const SlowSpans& slow_spans,
                                  std::span<const SpanNumber> under_way) {
  // This may throw, so it comes first: the period is then unchanged.
  AggregatedPeriod period = CopyForTake(slow_spans, under_way);
  CountForgotten(slow_spans);
  period.labels = &labels;
  budget_.GiveBack(contexts_.size() * kContextBytes + context_ids_.memory_bytes());
  std::swap(period.contexts, contexts_);  // a new one
  context_ids_ = IdTable();
  has_spans_ = false;
  std::swap(period.trie, trie_);  // a new one
  period.rows = std::exchange(rows_, RowTable(value_count_));
  period.moments = std::exchange(moments_, MomentTable(value_count_));
  period.lives = std::exchange(lives_, LifeTable());
  budget_.GiveBack(period.trie.memory_bytes() + period.rows.memory_bytes() +
                   period.moments.memory_bytes() + period.lives.memory_bytes() +
                   modules_.memory_bytes());
  // If memory runs out, the history keeps more modules than it needs.
  static_cast<void>(internal::HasMemoryFor([this] { modules_.KeepNewest(); }));
  budget_.Take(trie_.memory_bytes() + modules_.memory_bytes());

  for (std::uint32_t key = 0; key < threads_.size(); ++key) {
    Thread& thread = threads_[key];
    if (thread.state == ThreadState::kFree) continue;
    if (thread.state == ThreadState::kEnded) {
      period.threads[key].thread.name = std::move(thread.name);
      thread = Thread();
      free_keys_.push_back(key);
      continue;
    }
    thread.has_rows = false;
    thread.last_row = kNone;
    thread.last_limit = Limit::kNone;
    CarryOver(thread, period.trie);
  }
  ended_threads_ = 0;
  // The lowest keys are reused first, so that the table of threads stays short.
  std::sort(free_keys_.begin(), free_keys_.end(), std::greater<>());
  std::size_t trailing = 0;
  for (; trailing < free_keys_.size() && free_keys_[trailing] + 1 == threads_.size(); ++trailing)
    threads_.pop_back();
  free_keys_.erase(free_keys_.begin(), free_keys_.begin() + static_cast<std::ptrdiff_t>(trailing));
  budget_.GiveBack(trailing * sizeof(Thread));
  UpdateReserve();
  return period;
}

// The last `depth` addresses of the path from the root to `node`, leaf first. Valid until the next
// call.
std::span<const Address> Aggregator::PathTo(const StackTrie& trie, std::uint32_t node,
                                            std::size_t depth) {
  path_.clear();
  for (; path_.size() < depth; node = trie[node].parent) path_.push_back(trie[node].address);
  return path_;
}

// Finds or makes the nodes below the thread's node. If the budget refuses a node, the nodes made so
// far stay, for later stacks that share them.
void Aggregator::Place(Thread& thread, std::span<const Address> leaf_first) {
  thread.is_whole = false;
  for (std::size_t left = leaf_first.size(); left > 0; --left) {
    const std::uint32_t node = trie_.Child(thread.node, leaf_first[left - 1], budget_);
    if (node == kNone) return;
    thread.node = node;
    ++thread.depth;
  }
  thread.is_whole = true;
}

void Aggregator::PlaceAnew(Thread& thread, std::span<const Address> leaf_first) {
  thread.depth = 0;
  thread.is_whole = false;
  thread.node =
      trie_.Child(StackTrie::kRoot,
                  StackTrie::StackKey(modules_.Canonical(thread.generation), thread.end), budget_);
  if (thread.node != kNone) Place(thread, leaf_first);
}

// The labels of the thread's rows with `context`.
std::uint32_t Aggregator::LabelsOf(std::uint32_t key, const SampleContext& context) {
  if (context.empty()) return key;
  if (context.word != kOverflowContext || !context.trace.empty()) {
    const std::uint32_t labels = FindOrAddContext({key, context}, Admission::kWithinBudget);
    if (labels != kNone) return labels;
  }
  if (context.span() != 0) {
    const std::uint32_t labels = LabelsOf(key, context.WithoutSpan());
    if (threads_[key].last_limit == Limit::kNone) threads_[key].last_limit = Limit::kSpans;
    return labels;
  }
  threads_[key].last_limit = Limit::kLabels;
  return FindOrAddContext({key, SampleContext(kOverflowContext)}, Admission::kAlways);
}

std::uint32_t Aggregator::FindOrAddContext(const PeriodContext& context, Admission admission) {
  const std::uint64_t hash = HashPair(DigestOf(context.context), context.thread);
  const std::uint32_t found = context_ids_.Find(hash, [&](std::uint32_t id) {
    return contexts_[id].thread == context.thread && contexts_[id].context == context.context;
  });
  if (found != kNone) return found | AggregatedPeriod::kContextBit;
  // A trace for each request must not take the room of the stacks.
  if (admission == Admission::kWithinBudget &&
      (contexts_.size() + 1) * kContextBytes > budget_.limit_bytes() / 2)
    return kNone;
  if (!context_ids_.MakeRoom(budget_, admission)) return kNone;
  const auto id = static_cast<std::uint32_t>(contexts_.size());
  if (!AllocateFrom(budget_, kContextBytes, admission, [&] { contexts_.push_back(context); }))
    return kNone;
  context_ids_.Insert(hash, id);
  has_spans_ = has_spans_ || context.context.span() != 0;
  return id | AggregatedPeriod::kContextBit;
}

// The node of a row whose stack lacks `skip` leaf frames of the thread's.
std::uint32_t Aggregator::RowNodeOf(const Thread& thread, std::uint64_t skip) {
  const std::size_t skipped = SkippedFrames(skip, thread.depth, thread.end);
  if (skipped != 0 && skipped == thread.depth) return PseudoNode(PseudoFrame::kLost);
  std::uint32_t node = thread.node;
  for (std::size_t left = skipped; left > 0; --left) node = trie_[node].parent;
  return node;
}

std::uint32_t Aggregator::PseudoNode(PseudoFrame frame) {
  return trie_.Child(StackTrie::kRoot, StackTrie::PseudoKey(frame), budget_, Admission::kAlways);
}

void Aggregator::AddToRow(std::uint32_t key, std::uint32_t node,
                          std::span<const std::int64_t> values, const SampleContext& context,
                          std::int64_t time_ns) {
  Thread& owner = threads_[key];
  owner.last_row = kNone;
  owner.last_is_cut = false;
  owner.last_limit = Limit::kNone;
  std::uint32_t row = kNone;
  if (node != kNone) row = rows_.FindOrAdd(trie_, node, LabelsOf(key, context), budget_);
  if (row == kNone) {
    owner.last_limit = Limit::kStacks;
    row = PseudoRow(key, PseudoFrame::kOverflow);
  }
  owner.has_rows = true;
  owner.last_row = row;
  AddToLast(owner, values, time_ns);
}

void Aggregator::AddToLast(Thread& owner, std::span<const std::int64_t> values,
                           std::int64_t time_ns) {
  const bool is_moment =
      time_ns != 0 && std::ranges::any_of(values, [](std::int64_t value) { return value != 0; });
  // This may throw, so it comes first.
  const bool has_room = is_moment && moments_.MakeRoom(budget_);
  overflows_.stacks += owner.last_limit == Limit::kStacks ? 1 : 0;
  overflows_.labels += owner.last_limit == Limit::kLabels ? 1 : 0;
  overflows_.spans += owner.last_limit == Limit::kSpans ? 1 : 0;
  overflows_.moments += is_moment && !has_room ? 1 : 0;
  rows_.Add(owner.last_row, values);
  if (has_room) moments_.Add(owner.last_row, time_ns, values);
}

std::uint32_t Aggregator::PseudoRow(std::uint32_t key, PseudoFrame frame) {
  threads_[key].has_rows = true;
  return rows_.FindOrAdd(trie_, PseudoNode(frame), key, budget_, Admission::kAlways);
}

void Aggregator::UpdateReserve() { budget_.set_reserve_bytes(threads_.size() * rows_.row_bytes()); }

}  // namespace strobe
