#include "thread_amounts.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strobe::internal {
namespace {

constexpr std::uint32_t kNone = 0xFFFFFFFF;

// One column of one account. The sums may wrap if weights are forged.
struct Account {
  std::uint32_t number = 0;
  std::uint32_t pool = 0;
  std::uint64_t residual = 0;  // signed; the values less than 0 are part of it
  std::uint64_t sampled = 0;   // sum of the other values
  Division division{};         // of its sum
  bool is_pooled = false;
  // Of a pooled account: the part of its pool's sum that its samples stand for.
  std::uint64_t part = 0;

  [[nodiscard]] bool is_cut() const { return static_cast<std::int64_t>(sampled + residual) < 0; }
  [[nodiscard]] std::uint64_t sum() const { return is_cut() ? 0 : sampled + residual; }
};

// Accounts that are one.
struct Pool {
  std::uint64_t sum = 0;
  std::uint64_t sampled = 0;
  Division division{};
  bool is_few = false;  // it is one with the other such pools
};

// A column of a period, with the accounts of its rows.
class Column {
 public:
  Column(std::span<const AmountRow> rows, std::span<std::int64_t> values, std::size_t width,
         std::size_t column)
      : rows_(rows), values_(values), width_(width), column_(column) {}

  [[nodiscard]] bool HasResidual() const {
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (IsResidual(row)) return true;
    }
    return false;
  }
  // Settles all accounts. Returns how many sums were less than 0.
  std::uint64_t Divide(std::int64_t least, std::vector<MovedAmount>& moved) {
    AddAccounts();
    Join(least);
    // The parts of the pools' rows, before they stand for their own accounts.
    std::vector<std::int64_t> parts(rows_.size());
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (value(row) == 0 || IsResidual(row) || !AccountOf(row).is_pooled) continue;
      parts[row] = PoolOf(AccountOf(row)).division.Next(value(row));
      AccountOf(row).part += static_cast<std::uint64_t>(parts[row]);
    }
    std::vector<Excess> excesses;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (value(row) == 0) continue;
      Account& account = AccountOf(row);
      value(row) = account.is_pooled ? SettlePooled(account, row, parts[row], excesses)
                                     : SettleAlone(account, row);
    }
    Move(excesses, moved);
    std::uint64_t cut = 0;
    for (const Account& account : accounts_) cut += account.is_cut() ? 1 : 0;
    return cut;
  }

 private:
  // What a row's samples stand for beyond the sum of their account.
  struct Excess {
    std::uint32_t pool = 0;
    std::size_t row = 0;
    std::uint64_t amount = 0;
  };

  [[nodiscard]] std::int64_t& value(std::size_t row) { return values_[row * width_ + column_]; }
  [[nodiscard]] bool IsResidual(std::size_t row) const {
    const std::int64_t amount = values_[row * width_ + column_];
    return amount != 0 && (rows_[row].is_residual || amount < 0);
  }
  Account& AccountOf(std::size_t row) { return accounts_[account_of_[row]]; }
  // The number of the pool that the account is settled in; kNone: the pool of those with too few.
  [[nodiscard]] std::uint32_t NumberOf(const Account& account) const {
    const auto at = pools_.find(account.pool);
    return at->second.is_few ? kNone : account.pool;
  }
  Pool& PoolOf(const Account& account) {
    Pool& pool = pools_.find(account.pool)->second;
    return pool.is_few ? few_ : pool;
  }

  void AddAccounts() {
    std::unordered_map<std::uint32_t, std::uint32_t> places;
    account_of_.assign(rows_.size(), kNone);
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (value(row) == 0) continue;
      const auto next = static_cast<std::uint32_t>(accounts_.size());
      const auto [at, is_new] = places.try_emplace(rows_[row].account, next);
      if (is_new) accounts_.push_back({.number = rows_[row].account, .pool = rows_[row].pool});
      account_of_[row] = at->second;
      Account& account = accounts_[at->second];
      (IsResidual(row) ? account.residual : account.sampled) +=
          static_cast<std::uint64_t>(value(row));
    }
    for (Account& account : accounts_)
      account.division = {.whole = account.sum(), .parts = account.sampled};
  }

  // Decides which accounts are one.
  void Join(std::int64_t least) {
    const auto is_few = [least](std::uint64_t sum) {
      return static_cast<std::int64_t>(sum) < least;
    };
    for (Account& account : accounts_) {
      account.is_pooled = !account.is_cut() && is_few(account.sum());
      Pool& pool = pools_[account.pool];
      if (account.is_pooled) Add(account.sum(), account.sampled, pool);
    }
    for (auto& [number, pool] : pools_) {
      pool.is_few = is_few(pool.sum);
      if (pool.is_few) Add(pool.sum, pool.sampled, few_);
    }
    for (Account& account : accounts_)
      account.is_pooled = account.is_pooled && PoolOf(account).sampled != 0;
    for (auto& [number, pool] : pools_) pool.division = {.whole = pool.sum, .parts = pool.sampled};
    few_.division = {.whole = few_.sum, .parts = few_.sampled};
  }
  static void Add(std::uint64_t sum, std::uint64_t sampled, Pool& pool) {
    pool.sum += sum;
    pool.sampled += sampled;
  }

  std::int64_t SettleAlone(Account& account, std::size_t row) {
    if (IsResidual(row)) {
      if (account.residual == 0 || account.sampled != 0) return 0;
      // Without samples, one row has the whole sum: the first.
      return static_cast<std::int64_t>(account.sum() -
                                       std::exchange(account.division.given, account.sum()));
    }
    return account.residual == 0 ? value(row) : account.division.Next(value(row));
  }
  // A row keeps its part, as far as the parts of its account's rows are within the account's sum.
  std::int64_t SettlePooled(Account& account, std::size_t row, std::int64_t part,
                            std::vector<Excess>& excesses) {
    if (IsResidual(row) || account.part <= account.sum()) return IsResidual(row) ? 0 : part;
    account.division.parts = account.part;
    const std::int64_t kept = account.division.Next(part);
    excesses.push_back({NumberOf(account), row, static_cast<std::uint64_t>(part - kept)});
    return kept;
  }

  // Gives what rows have beyond their accounts to accounts of the same pool that lack as much.
  void Move(std::vector<Excess>& excesses, std::vector<MovedAmount>& moved) {
    std::unordered_map<std::uint32_t, std::vector<Excess*>> of_pools;  // the last one is the next
    for (auto excess = excesses.rbegin(); excess != excesses.rend(); ++excess) {
      if (excess->amount != 0) of_pools[excess->pool].push_back(&*excess);
    }
    for (const Account& account : accounts_) {
      if (!account.is_pooled || account.part >= account.sum()) continue;
      std::vector<Excess*>& sources = of_pools[NumberOf(account)];
      std::uint64_t lacking = account.sum() - account.part;
      while (lacking != 0 && !sources.empty()) {
        Excess& source = *sources.back();
        const std::uint64_t amount = std::min(lacking, source.amount);
        moved.push_back({.account = account.number,
                         .row = source.row,
                         .column = column_,
                         .amount = static_cast<std::int64_t>(amount)});
        lacking -= amount;
        source.amount -= amount;
        if (source.amount == 0) sources.pop_back();
      }
    }
  }

  const std::span<const AmountRow> rows_;
  const std::span<std::int64_t> values_;
  const std::size_t width_;
  const std::size_t column_;
  std::vector<Account> accounts_;
  std::vector<std::uint32_t> account_of_;  // of each row: index into accounts_; kNone: no amount
  std::unordered_map<std::uint32_t, Pool> pools_;
  Pool few_;
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
                              std::span<const std::int64_t> least,
                              std::vector<MovedAmount>& moved) {
  std::uint64_t sums_cut = 0;
  const std::size_t width = rows.empty() ? 0 : values.size() / rows.size();
  for (std::size_t i = 0; i < width; ++i) {
    Column column(rows, values, width, i);
    if (column.HasResidual()) sums_cut += column.Divide(i < least.size() ? least[i] : 0, moved);
  }
  return sums_cut;
}

}  // namespace strobe::internal
