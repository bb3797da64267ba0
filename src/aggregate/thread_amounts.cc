#include "thread_amounts.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

namespace strobe::internal {
namespace {

// One column of one account, or of several that are one. The sums may wrap if weights are forged.
struct Balance {
  std::uint64_t residual = 0;  // signed; the values less than 0 are part of it
  std::uint64_t sampled = 0;   // sum of the other values
  Division division{};

  [[nodiscard]] bool is_cut() const { return static_cast<std::int64_t>(sampled + residual) < 0; }
  [[nodiscard]] std::uint64_t sum() const { return is_cut() ? 0 : sampled + residual; }

  void Add(const Balance& other) {
    residual += other.residual;
    sampled += other.sampled;
  }
  // What the value becomes. Call it when both sums are known.
  std::int64_t Settle(std::int64_t value, bool is_residual) {
    if (residual == 0 || (is_residual && sampled != 0)) return is_residual ? 0 : value;
    division.whole = sum();
    division.parts = sampled;
    // Without samples, one row has the whole sum: the first.
    return is_residual ? static_cast<std::int64_t>(sum() - std::exchange(division.given, sum()))
                       : division.Next(value);
  }
};

struct Account {
  Balance own;
  Balance* pool = nullptr;  // nullptr if the account stands for itself

  Balance& SettledIn() { return pool != nullptr ? *pool : own; }
};

// The accounts of a column that has a residual.
class Accounts {
 public:
  void Add(const AmountRow& row, std::int64_t value, bool is_residual) {
    const auto [at, is_new] = accounts_.try_emplace(row.account);
    if (is_new) at->second.pool = &pools_[row.pool];
    Balance& own = at->second.own;
    (is_residual ? own.residual : own.sampled) += static_cast<std::uint64_t>(value);
  }
  // Decides which accounts are one. Call it when all rows have been added.
  void Join(std::int64_t least) {
    for (auto& [id, account] : accounts_) {
      if (account.own.is_cut() || static_cast<std::int64_t>(account.own.sum()) >= least) {
        account.pool = nullptr;
      } else {
        account.pool->Add(account.own);
      }
    }
    for (auto& [id, account] : accounts_) {
      if (account.pool != nullptr && account.pool->sampled == 0) account.pool = nullptr;
    }
  }
  std::int64_t Settle(const AmountRow& row, std::int64_t value, bool is_residual) {
    return accounts_.find(row.account)->second.SettledIn().Settle(value, is_residual);
  }
  // How many sums are less than 0.
  std::uint64_t CountCut() {
    std::uint64_t cut = 0;
    for (auto& [id, account] : accounts_)
      cut += account.pool == nullptr && account.own.is_cut() ? 1 : 0;
    return cut;
  }

 private:
  // Their elements stay where they are.
  std::unordered_map<std::uint32_t, Account> accounts_;
  std::unordered_map<std::uint32_t, Balance> pools_;
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

std::uint64_t DivideResiduals(std::span<const AmountRow> rows, std::span<std::int64_t> values,
                              std::span<const std::int64_t> least) {
  std::uint64_t sums_cut = 0;
  const std::size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (std::size_t column = 0; column < width; ++column) {
    const auto value = [&](std::size_t row) -> std::int64_t& {
      return values[row * width + column];
    };
    const auto is_residual = [&](std::size_t row) {
      return value(row) != 0 && (rows[row].is_residual || value(row) < 0);
    };
    bool has_residual = false;
    for (std::size_t row = 0; row < rows.size() && !has_residual; ++row)
      has_residual = is_residual(row);
    if (!has_residual) continue;
    Accounts accounts;
    const auto visit = [&](const auto& body) {
      for (std::size_t row = 0; row < rows.size(); ++row) {
        if (value(row) != 0) body(rows[row], value(row), is_residual(row));
      }
    };
    visit([&](const AmountRow& row, std::int64_t amount, bool is_rest) {
      accounts.Add(row, amount, is_rest);
    });
    accounts.Join(column < least.size() ? least[column] : 0);
    visit([&](const AmountRow& row, std::int64_t& amount, bool is_rest) {
      amount = accounts.Settle(row, amount, is_rest);
    });
    sums_cut += accounts.CountCut();
  }
  return sums_cut;
}

}  // namespace strobe::internal
