// Recording: one aggregation of samples over a time, with columns of its own.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "strobe/aggregate/aggregated_period.h"
#include "strobe/aggregate/aggregator.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/life_table.h"
#include "strobe/aggregate/overflows.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"
#include "strobe/core/record.h"
#include "strobe/core/stack.h"

namespace strobe {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
// The samples of one period of a recording.
struct RecordedPeriod {
  AggregatedPeriod samples;
  std::int64_t time_ns = 0;  // when the period began, since 1970
  std::int64_t duration_ns = 0;
  Overflows overflows;
};

// The continuous export is one recording, whose periods follow each other. Each call of Record is
// another recording. A recording takes whole rows and keeps the values of its columns. The owner
// numbers the threads. Collector thread only. A call that throws std::bad_alloc has added nothing,
// and can be repeated.
class Recording {
 public:
  // One instant on both clocks.
  struct Time {
    std::int64_t monotonic_ns = 0;
    std::int64_t unix_ns = 0;
  };

  // `columns` are indices into the rows, at most kMaxValueTypes. For the limit, see Aggregator.
  Recording(std::vector<std::size_t> columns, std::size_t memory_limit_bytes, const Time& begin);

  // Copies the threads of `other`, each with its last stack, and the loaded modules. From then on
  // both recordings can take the same records. This recording must be empty.
  void Join(const Recording& other);

  void AddThread(std::uint32_t thread, std::uint64_t id, std::string name);
  // Takes no memory.
  void RemoveThread(std::uint32_t thread);
  // These functions are those of Aggregator.
  void SetModules(std::uint32_t generation, const ModuleMap& map) {
    aggregator_.SetModules(generation, map);
  }
  [[nodiscard]] bool WasUnloaded(std::uint32_t generation, Address address) const {
    return aggregator_.WasUnloaded(generation, address);
  }
  bool Add(std::uint32_t thread, const StackDelta& stack, std::span<const std::int64_t> row,
           const SampleContext& context, std::int64_t time_ns = 0) {
    Values values;
    return aggregator_.Add(keys_[thread], stack, Select(row, values), context, time_ns);
  }
  bool ExtendLast(std::uint32_t thread, std::span<const std::int64_t> row,
                  const SampleContext& context, std::int64_t time_ns = 0) {
    Values values;
    return aggregator_.ExtendLast(keys_[thread], Select(row, values), context, time_ns);
  }
  void ForgetLast(std::uint32_t thread) { aggregator_.ForgetLast(keys_[thread]); }
  void AddPseudo(std::uint32_t thread, PseudoFrame frame, std::span<const std::int64_t> row) {
    Values values;
    aggregator_.AddPseudo(keys_[thread], frame, Select(row, values));
  }

  // Adds to the thread's life, with times of the monotonic clock. At the limit of lives, counts the
  // thread as unlisted, once a period.
  void AddLife(std::uint32_t thread, const LifePart& part);

  // Ends the period, and begins the next. Samples in a span of `slow_under_way` count as slow, like
  // those in a span of ProcessSlowSpans.
  RecordedPeriod Take(const LabelTable& labels, const Time& now,
                      std::span<const SpanNumber> slow_under_way = {});

  // The sum of the period so far. `column` is an index into the recording's own columns.
  [[nodiscard]] std::int64_t Sum(std::size_t column) const { return aggregator_.Sum(column); }
  [[nodiscard]] bool has_spans() const { return aggregator_.has_spans(); }
  [[nodiscard]] std::size_t memory_bytes() const { return aggregator_.memory_bytes(); }
  // What the limits have kept out, since construction.
  [[nodiscard]] Overflows overflows() const {
    Overflows overflows = aggregator_.overflows();
    overflows.threads = threads_unlisted_;
    return overflows;
  }

 private:
  using Values = std::array<std::int64_t, kMaxValueTypes>;
  static constexpr std::uint32_t kNoKey = 0xFFFFFFFF;

  std::span<const std::int64_t> Select(std::span<const std::int64_t> row, Values& values) const {
    for (std::size_t i = 0; i < columns_.size(); ++i) values[i] = row[columns_[i]];
    return std::span(values).first(columns_.size());
  }

  const std::vector<std::size_t> columns_;
  Aggregator aggregator_;
  std::vector<std::uint32_t> keys_;  // the aggregator's, by thread
  std::vector<bool> is_unlisted_;    // by thread: counted in this period; may be shorter
  std::uint64_t threads_unlisted_ = 0;
  Time begin_;
  Overflows overflows_before_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
