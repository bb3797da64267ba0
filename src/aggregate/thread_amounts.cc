#include "thread_amounts.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace strobe::internal {
namespace {

// One column of one account. The sums may wrap if weights are forged.
struct Balance {
  std::uint64_t residual = 0;  // signed; the values less than 0 are part of it
  std::uint64_t sampled = 0;   // sum of the other values
  Division division{};

  [[nodiscard]] bool is_cut() const { return static_cast<std::int64_t>(sampled + residual) < 0; }
  [[nodiscard]] std::uint64_t sum() const { return is_cut() ? 0 : sampled + residual; }

  // The part of the next value. Call it when both sums are known.
  std::int64_t Divide(std::int64_t value) {
    division.whole = sum();
    division.parts = sampled;
    return division.Next(value);
  }
};

}  // namespace

std::int64_t Division::Next(std::int64_t part) {
  if (part <= 0) return 0;
  seen += static_cast<std::uint64_t>(part);
  // The last part gets the rest, so that no rounding is lost.
  const double share =
      static_cast<double>(whole) * (static_cast<double>(seen) / static_cast<double>(parts));
  const std::uint64_t due = seen != parts && share < static_cast<double>(whole)
                                ? std::min(whole, static_cast<std::uint64_t>(share))
                                : whole;
  const std::uint64_t before = std::exchange(given, std::max(given, due));
  return static_cast<std::int64_t>(given - before);
}

std::uint64_t DivideResiduals(std::span<const AmountRow> rows, std::span<std::int64_t> values) {
  std::uint64_t sums_cut = 0;
  const std::size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (std::size_t column = 0; column < width; ++column) {
    const auto value = [&](std::size_t row) -> std::int64_t& {
      return values[row * width + column];
    };
    const auto is_residual = [&](std::size_t row) {
      return value(row) != 0 && (rows[row].is_residual || value(row) < 0);
    };
    std::unordered_map<std::uint32_t, Balance> balances;  // of accounts with a residual
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (is_residual(row))
        balances[rows[row].account].residual += static_cast<std::uint64_t>(value(row));
    }
    if (balances.empty()) continue;
    const auto visit = [&](const auto& body) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        const auto at = balances.find(rows[row].account);
        if (at != balances.end()) body(at->second, row);
      }
    };
    visit([&](Balance& balance, std::size_t row) {
      if (!is_residual(row)) balance.sampled += static_cast<std::uint64_t>(value(row));
    });
    visit([&](Balance& balance, std::size_t row) {
      if (!is_residual(row)) {
        value(row) = balance.Divide(value(row));
      } else if (balance.sampled != 0) {
        value(row) = 0;
      } else {
        // One row has the whole sum: the first.
        value(row) = static_cast<std::int64_t>(balance.sum() - balance.division.given);
        balance.division.given = balance.sum();
      }
    });
    for (const auto& [account, balance] : balances) sums_cut += balance.is_cut() ? 1 : 0;
  }
  return sums_cut;
}

}  // namespace strobe::internal
