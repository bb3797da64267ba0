// ThreadAmounts: divides what a thread's clock says among the thread's rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace strobe::internal {

// Divides a whole among the parts of a sum, each in proportion to its value. Parts that add up to
// the sum get the whole, to the unit; fewer parts get less.
struct Division {
  std::uint64_t whole = 0;
  std::uint64_t parts = 0;  // their sum
  std::uint64_t seen = 0;   // sum of the parts that calls of Next have had
  std::uint64_t given = 0;  // sum of the results

  // What the next part gets. Nothing for a part of 0 or less.
  std::int64_t Next(std::int64_t part);
};

// One row of a period. Rows of one account add up to that account's clock.
struct AmountRow {
  std::uint32_t account = 0;
  std::uint32_t pool = 0;    // of the account: the same in all of its rows
  bool is_residual = false;  // the difference between the clock and the other rows
};

// For each account and column: divides the residual among the other rows whose values are more than
// 0, in proportion to them, so that the sum stays the same to the unit, and the residual becomes 0.
// If there is no such row, the residual stays. A value less than 0 of any row is part of the
// residual, and becomes 0. Returns how many sums were less than 0: these become 0.
//
// Why in proportion: let a thread run for the time T by its clock, with the share p of it in A, and
// let n samples fall at random into T. Each is in A with the probability p, so T * (those in A) / n
// is T * p in the mean for every n > 0, and its variance is T^2 p (1 - p) / n. Weighting each
// sample with the time since the one before is unbiased, too. But these weights are exponentially
// distributed, their mean square is twice their squared mean, and so the variance is twice as
// large.
//
// An account whose sum is less than `least` of the column has too few samples for that, or none.
// It is one with all such accounts of its pool: their rows add up to the sum of their clocks, and
// their residuals are divided among the samples of all. Where there is no sample either, each
// account stands for itself.
//
// Why by the sum, and not by whether there were samples: a thread that runs for the time T has
// T / period samples in the mean, however short T is. So among accounts that the clock alone has
// chosen, each thread's work has its share in the mean. Those that happen to have a sample are the
// longer ones.
//
// `values` has `values.size() / rows.size()` columns, row by row.
std::uint64_t DivideResiduals(std::span<const AmountRow> rows, std::span<std::int64_t> values,
                              std::span<const std::int64_t> least = {});

}  // namespace strobe::internal
