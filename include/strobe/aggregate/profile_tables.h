// ProfileTables: the stacks, sets of labels and rows of a profile that is being made, each once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/container/flat_hash_map.h"
#include "strobe/aggregate/bounded_table.h"
#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"

namespace strobe {

// Each call gets the same profile, whose root node is there, and which nothing else adds stacks,
// sets of labels or rows to. Not thread-safe.
class ProfileTables {
 public:
  static constexpr std::uint32_t kNone = IdTable::kNone;

  // `max_bytes` is the limit of budget(). The tables take from the budget what the profile and they
  // grow by, beyond the limit as well: the owner asks what is left.
  explicit ProfileTables(std::size_t max_bytes) : budget_(max_bytes) {}

  [[nodiscard]] MemoryBudget& budget() { return budget_; }
  [[nodiscard]] const MemoryBudget& budget() const { return budget_; }

  // The node of `frame` below `parent`; kNone if there is none.
  [[nodiscard]] std::uint32_t FindNode(const Profile& profile, std::uint32_t parent,
                                       std::uint32_t frame) const;
  // The same, made if it is missing.
  std::uint32_t Node(Profile& profile, std::uint32_t parent, std::uint32_t frame);
  // The number of an equal set of labels, which is added if it is missing.
  std::uint32_t Labels(Profile& profile, LabelSet set);
  // The row of `stack` and `labels`; kNone if there is none.
  [[nodiscard]] std::uint32_t FindRow(const Profile& profile, std::uint32_t stack,
                                      std::uint32_t labels) const;
  // The same, made if it is missing, after `values` have been added to its values. A sum stays in
  // its range. All rows have as many values as the first.
  std::uint32_t AddRow(Profile& profile, std::uint32_t stack, std::uint32_t labels,
                       std::span<const std::int64_t> values);
  // Forgets which rows there are; for an owner that takes them away to add them anew.
  void ForgetRows() { rows_ = {}; }

 private:
  MemoryBudget budget_;
  IdTable branches_;  // nodes that do not stand right behind their parents, by parent and frame
  IdTable rows_;      // by stack and labels
  absl::flat_hash_map<LabelSet, std::uint32_t> label_sets_;
};

}  // namespace strobe
