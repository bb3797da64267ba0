// MergedLabels: the distinct sets of labels of a period's rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/label_set.h"

namespace strobe::internal {

// Sets have numbers, from 0 on. Each belongs to an account: the number of the set that has only its
// thread's labels. Threads with the same id and name have the same.
class MergedLabels {
 public:
  static constexpr std::uint32_t kNone = 0xFFFFFFFF;

  // The period must outlive the object.
  explicit MergedLabels(const AggregatedPeriod& period);
  // Not copied: the table refers to the sets.
  MergedLabels(const MergedLabels&) = delete;
  MergedLabels& operator=(const MergedLabels&) = delete;

  // The set of a row of the period, made at the first call.
  std::uint32_t OfRow(std::uint32_t row);
  // The account of a thread, by its key; kNone if no row asked for it.
  [[nodiscard]] std::uint32_t OfThread(std::uint32_t key) const { return thread_labels_[key]; }

  [[nodiscard]] std::size_t size() const { return sets_.size(); }
  [[nodiscard]] std::uint32_t AccountOf(std::uint32_t number) const {
    return sets_[number].account;
  }
  // Moves a set away, once no row is asked for any more.
  [[nodiscard]] LabelSet Take(std::uint32_t number) { return std::move(sets_[number].labels); }

 private:
  struct Set {
    LabelSet labels;
    std::uint32_t account = 0;
  };
  // A table of sets by their numbers, so that each set is in memory once.
  struct SetHash {
    const std::vector<Set>* sets;
    std::size_t operator()(std::uint32_t id) const { return absl::HashOf((*sets)[id].labels); }
  };
  struct SetsAreEqual {
    const std::vector<Set>* sets;
    bool operator()(std::uint32_t a, std::uint32_t b) const {
      return (*sets)[a].labels == (*sets)[b].labels;
    }
  };

  std::uint32_t Intern(LabelSet labels, std::uint32_t account);
  std::uint32_t MakeOfThread(std::uint32_t key);

  const AggregatedPeriod& period_;
  std::vector<Set> sets_;
  std::unordered_set<std::uint32_t, SetHash, SetsAreEqual> numbers_{0, SetHash{&sets_},
                                                                    SetsAreEqual{&sets_}};
  std::vector<std::uint32_t> thread_labels_;   // of each thread's key
  std::vector<std::uint32_t> context_labels_;  // of each of the period's contexts
};

}  // namespace strobe::internal
