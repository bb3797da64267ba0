// LabelTable: numbers for sets of labels, so that a thread's context is one word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>

#include "strobe/aggregate/bounded_table.h"
#include "strobe/core/label_set.h"

namespace strobe {

// Sets get numbers in the order in which they are first seen, and keep them for the table's life.
// Control plane, any thread.
class LabelTable {
 public:
  // The memory limit for all sets. A program with a label per request would otherwise grow without
  // end.
  static constexpr std::size_t kDefaultLimitBytes = std::size_t{4} << 20;

  explicit LabelTable(std::size_t limit_bytes = kDefaultLimitBytes);

  // The number of `set`, which equal sets share; kOverflowContext if the limit is reached.
  std::uint64_t Intern(LabelSet set);

  // The set with that number, valid for the table's life. A forged record may have any other
  // number: it gives the overflow set, whose only label is "labels": "[overflow]".
  [[nodiscard]] const LabelSet& operator[](std::uint64_t number) const;

 private:
  mutable std::mutex mutex_;
  MemoryBudget budget_;
  IdTable ids_;
  std::deque<LabelSet> sets_;  // by number; a deque never moves them
};

}  // namespace strobe
