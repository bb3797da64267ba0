#include "strobe/aggregate/aggregator.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace strobe {
namespace {

// How many frames two stacks have in common from the root. The arguments point one past the root's frame.
std::size_t SharedRootFrames(const Address* a_end, const Address* b_end, std::size_t limit) {
  constexpr std::size_t kBlock = 4;
  std::size_t shared = 0;
  for (; shared + kBlock <= limit; shared += kBlock) {
    const Address* const a = a_end - shared - kBlock;
    const Address* const b = b_end - shared - kBlock;
    if (((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) != 0) break;
  }
  while (shared < limit && *(a_end - shared - 1) == *(b_end - shared - 1)) ++shared;
  return shared;
}

}  // namespace

Aggregator::Aggregator(std::size_t value_count, std::size_t memory_limit_bytes)
    : value_count_(value_count), budget_(memory_limit_bytes), rows_(value_count) {
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
    threads_.emplace_back();
    budget_.Take(sizeof(Thread));
    UpdateReserve();
  }
  if (ended_threads_ >= kMaxEndedThreads) {
    shared_key_ = key;
    id = 0;
    name = std::string(PseudoFrameName(PseudoFrame::kFolded));
  }
  Thread& thread = threads_[key];
  thread = Thread();
  thread.id = id;
  thread.name = std::move(name);
  thread.state = ThreadState::kAlive;
  return key;
}

void Aggregator::RemoveThread(std::uint32_t key) {
  Thread& thread = threads_[key];
  if (key == shared_key_ || thread.state != ThreadState::kAlive) return;
  DropLast(thread);
  if (thread.has_rows) {
    thread.state = ThreadState::kEnded;
    ++ended_threads_;
  } else {
    thread = Thread();
    free_keys_.push_back(key);
  }
}

void Aggregator::SetModules(std::uint32_t generation, const ModuleMap& map) {
  budget_.GiveBack(modules_.memory_bytes());
  modules_.Add(generation, map);
  budget_.Take(modules_.memory_bytes());
}

void Aggregator::Add(std::uint32_t thread, std::uint32_t generation, StackEnd end, std::span<const Address> leaf_first,
                     std::span<const std::int64_t> values) {
  // A stack without any frame has nothing to show but that it broke.
  if (leaf_first.empty() && end == StackEnd::kComplete) end = StackEnd::kBroken;
  Thread& owner = threads_[thread];
  owner.was_sampled = true;
  if (thread == shared_key_) return AddToRow(thread, kNone, values);
  if ((owner.last == nullptr || owner.last->capacity < leaf_first.size()) && !MakeRoom(owner, leaf_first.size())) {
    return AddToRow(thread, PlaceWithoutLast(generation, end, leaf_first), values);
  }
  LastStack& last = *owner.last;
  const std::size_t count = leaf_first.size();
  Address* const frames_end = last.frames.get() + last.capacity;
  const std::size_t shared = SharedRootFrames(leaf_first.data() + count, frames_end, std::min<std::size_t>(count, last.count));
  const bool same_root =
      last.end == end && (last.generation == generation || modules_.Canonical(last.generation) == modules_.Canonical(generation));
  if (same_root && shared == count && count == last.count && owner.last_row != kNone) {
    folded_ += owner.last_is_folded ? 1 : 0;
    return rows_.Add(owner.last_row, values);
  }
  std::copy_n(leaf_first.data(), count - shared, frames_end - count);
  last.count = static_cast<std::uint32_t>(count);
  last.known = same_root ? std::min(last.known, static_cast<std::uint32_t>(shared)) : 0;
  if (!same_root) last.root = kNone;
  last.generation = generation;
  last.end = end;
  AddToRow(thread, Place(last), values);
}

bool Aggregator::ExtendLast(std::uint32_t thread, std::span<const std::int64_t> values) {
  Thread& owner = threads_[thread];
  if (!owner.was_sampled) return false;
  if (owner.last_row != kNone) {
    folded_ += owner.last_is_folded ? 1 : 0;
    rows_.Add(owner.last_row, values);
  } else {
    AddToRow(thread, owner.last == nullptr ? kNone : Place(*owner.last), values);
  }
  return true;
}

void Aggregator::AddPseudo(std::uint32_t thread, PseudoFrame frame, std::span<const std::int64_t> values) {
  rows_.Add(PseudoRow(thread, frame), values);
}

AggregatedPeriod Aggregator::Take() {
  budget_.GiveBack(trie_.memory_bytes() + rows_.memory_bytes() + modules_.memory_bytes());
  AggregatedPeriod period;
  period.trie = std::exchange(trie_, StackTrie());
  period.rows = std::exchange(rows_, RowTable(value_count_));
  period.modules = modules_;
  modules_.KeepNewest();
  budget_.Take(trie_.memory_bytes() + modules_.memory_bytes());

  period.threads.resize(threads_.size());
  for (std::uint32_t key = 0; key < threads_.size(); ++key) {
    Thread& thread = threads_[key];
    if (thread.state == ThreadState::kFree) continue;
    period.threads[key].alive = thread.state == ThreadState::kAlive && key != shared_key_;
    period.threads[key].thread.id = thread.id;
    if (thread.state == ThreadState::kEnded) {
      period.threads[key].thread.name = std::move(thread.name);
      thread = Thread();
      free_keys_.push_back(key);
      continue;
    }
    period.threads[key].thread.name = thread.name;
    thread.has_rows = false;
    thread.last_row = kNone;
    thread.last_is_folded = false;
    if (thread.last != nullptr) {
      thread.last->root = kNone;
      thread.last->known = 0;
    }
  }
  ended_threads_ = 0;
  // Low keys first, so that the table of threads can stay short.
  std::sort(free_keys_.begin(), free_keys_.end(), std::greater<>());
  std::size_t trailing = 0;
  for (; trailing < free_keys_.size() && free_keys_[trailing] + 1 == threads_.size(); ++trailing) threads_.pop_back();
  free_keys_.erase(free_keys_.begin(), free_keys_.begin() + static_cast<std::ptrdiff_t>(trailing));
  budget_.GiveBack(trailing * sizeof(Thread));
  UpdateReserve();
  return period;
}

std::size_t Aggregator::LastStackBytes(std::size_t capacity) {
  return sizeof(LastStack) + capacity * (sizeof(Address) + sizeof(std::uint32_t));
}

// A thread's room for its last stack; never more than half the limit for all of them. Where there is none, the thread's last stack is
// forgotten.
bool Aggregator::MakeRoom(Thread& thread, std::size_t frames) {
  constexpr std::size_t kStep = 16;
  DropLast(thread);
  const std::size_t capacity = (std::max<std::size_t>(frames, 1) + kStep - 1) / kStep * kStep;
  const std::size_t bytes = LastStackBytes(capacity);
  if (last_stack_bytes_ + bytes > budget_.limit_bytes() / 2 || !budget_.TryTake(bytes)) return false;
  last_stack_bytes_ += bytes;
  thread.last = std::make_unique<LastStack>();
  thread.last->frames = std::make_unique<Address[]>(capacity);
  thread.last->path = std::make_unique<std::uint32_t[]>(capacity);
  thread.last->capacity = static_cast<std::uint32_t>(capacity);
  return true;
}

void Aggregator::DropLast(Thread& thread) {
  if (thread.last == nullptr) return;
  last_stack_bytes_ -= LastStackBytes(thread.last->capacity);
  budget_.GiveBack(LastStackBytes(thread.last->capacity));
  thread.last.reset();
}

// Finds or makes the nodes of `last` that are not known yet. The leaf's, or kNone where the budget refused; what was made until then is
// used by the next stack that shares it.
std::uint32_t Aggregator::Place(LastStack& last) {
  if (last.root == kNone) {
    last.known = 0;
    last.root = trie_.Child(StackTrie::kRoot, StackTrie::StackKey(modules_.Canonical(last.generation), last.end), budget_);
    if (last.root == kNone) return kNone;
  }
  std::uint32_t node = last.known == 0 ? last.root : last.path[last.known - 1];
  const Address* const frames_end = last.frames.get() + last.capacity;
  std::uint32_t depth = last.known;
  for (; depth < last.count; ++depth) {
    node = trie_.Child(node, *(frames_end - depth - 1), budget_);
    if (node == kNone) break;
    last.path[depth] = node;
  }
  last.known = depth;
  return node;
}

std::uint32_t Aggregator::PlaceWithoutLast(std::uint32_t generation, StackEnd end, std::span<const Address> leaf_first) {
  std::uint32_t node = trie_.Child(StackTrie::kRoot, StackTrie::StackKey(modules_.Canonical(generation), end), budget_);
  for (std::size_t i = leaf_first.size(); i > 0 && node != kNone; --i) node = trie_.Child(node, leaf_first[i - 1], budget_);
  return node;
}

void Aggregator::AddToRow(std::uint32_t key, std::uint32_t node, std::span<const std::int64_t> values) {
  Thread& owner = threads_[key];
  std::uint32_t row = node == kNone ? kNone : rows_.FindOrAdd(trie_, node, key, budget_);
  owner.last_is_folded = row == kNone;
  if (row == kNone) {
    row = PseudoRow(key, PseudoFrame::kFolded);
    ++folded_;
  }
  owner.has_rows = true;
  owner.last_row = row;
  rows_.Add(row, values);
}

std::uint32_t Aggregator::PseudoRow(std::uint32_t key, PseudoFrame frame) {
  threads_[key].has_rows = true;
  const std::uint32_t node = trie_.Child(StackTrie::kRoot, StackTrie::PseudoKey(frame), budget_, Admission::kAlways);
  return rows_.FindOrAdd(trie_, node, key, budget_, Admission::kAlways);
}

void Aggregator::UpdateReserve() { budget_.set_reserve_bytes(threads_.size() * rows_.row_bytes()); }

}  // namespace strobe
