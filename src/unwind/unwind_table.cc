#include "strobe/unwind/unwind_table.h"

#include <limits>
#include <unordered_map>

namespace strobe {
namespace {

constexpr unsigned kMinShift = 6;
constexpr unsigned kMaxShift = 13;

// Rows whose rule differs from the one before.
std::vector<UnwindRow> Merged(const std::vector<UnwindRow>& rows) {
  std::vector<UnwindRow> merged;
  merged.push_back({0, UnwindRule::Unknown()});
  for (const UnwindRow& row : rows) {
    if (row.offset == merged.back().offset) {
      merged.back().rule = row.rule;
      if (merged.size() > 1 && merged[merged.size() - 2].rule == row.rule) merged.pop_back();
    } else if (row.rule != merged.back().rule) {
      merged.push_back(row);
    }
  }
  return merged;
}

}  // namespace

UnwindTable::UnwindTable(std::uint32_t text_bytes, const std::vector<UnwindRow>& all_rows, std::vector<SpecialRule> specials,
                         std::vector<SavedRow> saved_rows)
    : specials_(std::move(specials)), saved_rows_(std::move(saved_rows)) {
  const std::vector<UnwindRow> rows = Merged(all_rows);
  // The size of pieces that makes the table smallest, where at most one row in thirty-two lies aside.
  std::size_t best_bytes = std::numeric_limits<std::size_t>::max();
  for (unsigned shift = kMinShift; shift <= kMaxShift; ++shift) {
    const std::size_t pieces = (std::size_t{text_bytes} >> shift) + 1;
    std::size_t aside = 0;
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t count = (rows[i].offset & ((1u << shift) - 1)) != 0 ? 1 : 0;  // the rule in force where the piece begins
      const std::uint32_t piece = rows[i].offset >> shift;
      for (; i < rows.size() && rows[i].offset >> shift == piece; ++i) ++count;
      if (count > kRowsPerLine) aside += count;
    }
    const std::size_t bytes = pieces * sizeof(Line) + aside * sizeof(Aside);
    if (bytes < best_bytes && (aside * 32 <= rows.size() || shift == kMinShift)) {
      best_bytes = bytes;
      shift_ = shift;
    }
  }

  std::unordered_map<std::uint32_t, std::uint16_t> numbers;
  const auto number_of = [&](UnwindRule rule) -> std::uint16_t {
    const auto [found, is_new] = numbers.try_emplace(rule.bits(), static_cast<std::uint16_t>(dictionary_.size()));
    if (is_new) {
      // More distinct rules than a line can name have never been seen; the rest would be unknown.
      if (dictionary_.size() == std::numeric_limits<std::uint16_t>::max()) return found->second = 0;
      dictionary_.push_back(rule);
    }
    return found->second;
  };
  number_of(UnwindRule::Unknown());

  lines_.resize((std::size_t{text_bytes} >> shift_) + 1);
  std::size_t next = 0;
  std::uint16_t in_force = 0;
  std::vector<Aside> piece_rows;
  for (std::size_t piece = 0; piece < lines_.size(); ++piece) {
    piece_rows.assign(1, {0, in_force});
    for (; next < rows.size() && rows[next].offset >> shift_ == piece; ++next) {
      const auto within = static_cast<std::uint16_t>(rows[next].offset & ((1u << shift_) - 1));
      in_force = number_of(rows[next].rule);
      if (within == 0) {
        piece_rows[0].rule = in_force;
      } else {
        piece_rows.push_back({within, in_force});
      }
    }
    Line& line = lines_[piece];
    line.offsets.fill(kNoRow);
    line.rules.fill(0);
    if (piece_rows.size() <= kRowsPerLine) {
      for (std::size_t i = 0; i < piece_rows.size(); ++i) {
        line.offsets[i] = piece_rows[i].offset;
        line.rules[i] = piece_rows[i].rule;
      }
    } else {
      const auto index = static_cast<std::uint32_t>(aside_.size());
      line.offsets[0] = 1;
      line.offsets[1] = static_cast<std::uint16_t>(piece_rows.size());
      line.offsets[2] = static_cast<std::uint16_t>(index & 0xFFFF);
      line.offsets[3] = static_cast<std::uint16_t>(index >> 16);
      aside_.insert(aside_.end(), piece_rows.begin(), piece_rows.end());
    }
  }
}

}  // namespace strobe
