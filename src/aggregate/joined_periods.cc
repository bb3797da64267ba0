#include "strobe/aggregate/joined_periods.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace strobe {
namespace {

using internal::StackTrie;

// Numbers of one period, and those of the joined one.
using Numbers = std::vector<std::uint32_t>;
constexpr std::uint32_t kUnknown = 0xFFFFFFFF;

class Joint {
 public:
  explicit Joint(std::span<const std::size_t> columns) : columns_(columns) {
    joined_.rows = RowTable(columns.size());
    joined_.moments = MomentTable(columns.size());
  }

  void Add(const AggregatedPeriod& period) {
    joined_.modules.Append(period.modules);
    const Numbers threads = AddThreads(period);
    const Numbers contexts = AddContexts(period, threads);
    const Numbers nodes = AddNodes(period);
    const Numbers rows = AddRows(period, threads, contexts, nodes);
    AddMoments(period.moments, rows);
    joined_.slow_spans.insert(joined_.slow_spans.end(), period.slow_spans.begin(),
                              period.slow_spans.end());
    joined_.labels = period.labels;
    joined_.unix_offset_ns = period.unix_offset_ns;
    joined_.zone_frames = period.zone_frames;
  }

  AggregatedPeriod Take(std::span<const SpanNumber> slow_spans) {
    std::vector<SpanNumber>& spans = joined_.slow_spans;
    spans.insert(spans.end(), slow_spans.begin(), slow_spans.end());
    std::ranges::sort(spans);
    spans.erase(std::unique(spans.begin(), spans.end()), spans.end());
    return std::move(joined_);
  }

 private:
  // A thread that lives on keeps its key. After its end, another thread may have the key.
  Numbers AddThreads(const AggregatedPeriod& period) {
    Numbers numbers(period.threads.size());
    for (std::uint32_t key = 0; key < numbers.size(); ++key) {
      const PeriodThread& thread = period.threads[key];
      if (!LivesOn(key, thread.thread)) {
        numbers[key] = static_cast<std::uint32_t>(joined_.threads.size());
        joined_.threads.push_back(thread);
      } else {
        numbers[key] = last_numbers_[key];
      }
      joined_.threads[numbers[key]].alive = thread.alive;
      const LifePart* const life = period.lives.Find(key);
      if (life != nullptr) static_cast<void>(joined_.lives.Add(numbers[key], *life, unlimited_));
    }
    last_numbers_ = numbers;
    return numbers;
  }
  [[nodiscard]] bool LivesOn(std::uint32_t key, const ProfileThread& thread) const {
    if (key >= last_numbers_.size()) return false;
    const PeriodThread& last = joined_.threads[last_numbers_[key]];
    return last.alive && last.thread.id == thread.id && last.thread.name == thread.name;
  }

  Numbers AddContexts(const AggregatedPeriod& period, const Numbers& threads) {
    Numbers numbers;
    numbers.reserve(period.contexts.size());
    for (const PeriodContext& context : period.contexts) {
      const std::uint32_t thread = threads[context.thread];
      const TraceContext& trace = context.context.trace;
      const auto number = static_cast<std::uint32_t>(joined_.contexts.size());
      const auto [at, is_new] = contexts_.try_emplace(
          {thread, context.context.word, trace.trace_id, trace.span_id, trace.local_root_span_id},
          number);
      if (is_new) joined_.contexts.push_back({thread, context.context});
      numbers.push_back(at->second);
    }
    return numbers;
  }

  // A stack's root has the generation of its modules, which has another list by now.
  [[nodiscard]] Address KeyOf(Address key) const {
    if (StackTrie::IsPseudoKey(key)) return key;
    return StackTrie::StackKey(joined_.modules.Canonical(StackTrie::GenerationOfKey(key)),
                               StackTrie::EndOfKey(key));
  }

  // Only the nodes that a row needs: a period begins with the last stacks of the one before.
  Numbers AddNodes(const AggregatedPeriod& period) {
    const StackTrie& trie = period.trie;
    std::vector<bool> is_needed(trie.size());
    for (std::uint32_t row = 0; row < period.rows.size(); ++row)
      is_needed[period.rows.node(row)] = true;
    for (std::uint32_t node = trie.size() - 1; node > 0; --node) {
      if (is_needed[node]) is_needed[trie[node].parent] = true;
    }
    Numbers numbers(trie.size(), kUnknown);
    numbers[StackTrie::kRoot] = StackTrie::kRoot;
    for (std::uint32_t node = 1; node < trie.size(); ++node) {
      if (!is_needed[node]) continue;
      const bool is_root = trie[node].parent == StackTrie::kRoot;
      numbers[node] =
          joined_.trie.Child(numbers[trie[node].parent],
                             is_root ? KeyOf(trie[node].address) : trie[node].address, unlimited_);
    }
    return numbers;
  }

  Numbers AddRows(const AggregatedPeriod& period, const Numbers& threads, const Numbers& contexts,
                  const Numbers& nodes) {
    constexpr std::uint32_t kContextBit = AggregatedPeriod::kContextBit;
    const RowTable& rows = period.rows;
    Numbers numbers(rows.size());
    std::vector<std::int64_t> values(columns_.size());
    for (std::uint32_t row = 0; row < rows.size(); ++row) {
      const std::uint32_t old = rows.labels(row);
      const std::uint32_t labels =
          (old & kContextBit) == 0 ? threads[old] : contexts[old & ~kContextBit] | kContextBit;
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = rows.value(row, columns_[i]);
      numbers[row] =
          joined_.rows.FindOrAdd(joined_.trie, nodes[rows.node(row)], labels, unlimited_);
      joined_.rows.Add(numbers[row], values);
    }
    return numbers;
  }

  void AddMoments(const MomentTable& moments, const Numbers& rows) {
    std::vector<std::int64_t> values(columns_.size());
    for (std::size_t moment = 0; moment < moments.size(); ++moment) {
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = moments.value(moment, columns_[i]);
      if (std::ranges::all_of(values, [](std::int64_t value) { return value == 0; })) continue;
      if (joined_.moments.MakeRoom(unlimited_))
        joined_.moments.Add(rows[moments.row(moment)], moments.time_ns(moment), values);
    }
  }

  const std::span<const std::size_t> columns_;
  // The periods are within a limit, and no table here has more than those of all periods together.
  MemoryBudget unlimited_{std::numeric_limits<std::size_t>::max()};
  AggregatedPeriod joined_;
  Numbers last_numbers_;  // of the threads of the last period, by key
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>,
           std::uint32_t>
      contexts_;
};

}  // namespace

RecordedPeriod JoinPeriods(std::span<const RecordedPeriod* const> periods,
                           std::span<const std::size_t> columns,
                           std::span<const SpanNumber> slow_spans) {
  Joint joint(columns);
  RecordedPeriod joined;
  joined.time_ns = periods.front()->time_ns;
  for (const RecordedPeriod* period : periods) {
    joint.Add(period->samples);
    joined.duration_ns += period->duration_ns;
    joined.overflows = joined.overflows + period->overflows;
  }
  joined.samples = joint.Take(slow_spans);
  return joined;
}

}  // namespace strobe
