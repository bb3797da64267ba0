#include "cfi_rows.h"

#include <algorithm>
#include <limits>

#include "cfi_machine.h"

namespace strobe::internal {
namespace {

// They nearly always come in order.
template <class T>
void SortByOffset(std::vector<T>& rows) {
  const auto is_before = [](const T& a, const T& b) { return a.offset < b.offset; };
  if (!std::is_sorted(rows.begin(), rows.end(), is_before)) std::stable_sort(rows.begin(), rows.end(), is_before);
}

// Rows that say something new. Between functions the last one's row goes on: nobody asks there, for want of a rule.
std::vector<SavedRow> Merged(const std::vector<SavedRow>& rows) {
  std::vector<SavedRow> merged;
  for (const SavedRow& row : rows) {
    if (!merged.empty() && merged.back().offset == row.offset) merged.pop_back();
    if (merged.empty() || merged.back().where != row.where || merged.back().distance != row.distance) merged.push_back(row);
  }
  return merged;
}

}  // namespace

bool ReadFdeRange(const CfiEntry& entry, DwarfReader& body, FdeRange& range) {
  range.begin = body.ReadPointer(entry.pointer_encoding);
  range.length = body.ReadPointer(entry.pointer_encoding & 0x0F);
  if (entry.has_augmentation_data) body.Skip(body.ReadUleb());
  return body.ok();
}

void CfiRows::AddRow(std::uint32_t offset, UnwindRule rule, SavedRow saved) {
  saved.offset = offset;
  rows_.push_back({offset, rule});
  saved_rows_.push_back(saved);
}

void CfiRows::Add(const CfiEntry& entry, DwarfReader body) {
  FdeRange range;
  if (!ReadFdeRange(entry, body, range)) return AddBroken(1);
  const Address begin = range.begin;
  const Address length = range.length;
  // A linker that drops a function may leave its FDE, with an address outside of the text.
  if (length == 0 || begin < text_start_ || begin >= text_limit_ || length > text_limit_ - begin) return;
  const Address end = begin + length;
  if (end <= first_ || begin >= limit_) return;
  statistics_.fdes += begin >= first_ ? 1 : 0;
  Fde fde{.begin = Offset(begin), .end = Offset(std::min(end, limit_)), .first_row = rows_.size(), .row_count = 0};
  CfiMachine machine(entry, registers_);
  const bool is_whole = machine.Run(body, begin, [&](Address location, const CfiState& state) {
    if (location < begin || location >= end || location >= limit_ || is_full()) return;
    const UnwindRule rule = specials_.RuleOf(state, entry, registers_);
    if (location >= first_) {
      ++statistics_.rows;
      statistics_.unknown_rows += rule == UnwindRule::Unknown() ? 1 : 0;
    }
    const std::uint32_t offset = Offset(location);
    AddRow(offset, rule, architecture_ == CfiArchitecture::kX86_64 ? SavedRowOf(offset, state, registers_) : SavedRow());
  });
  if (!is_whole) {
    // From the last row on nothing can be trusted.
    AddBroken(1);
    if (rows_.size() == fde.first_row) {
      AddRow(fde.begin, UnwindRule::Unknown(), SavedRow());
    } else {
      rows_.back().rule = UnwindRule::Unknown();
    }
  }
  fde.row_count = rows_.size() - fde.first_row;
  fdes_.push_back(fde);
}

CompiledCfi CfiRows::Take() {
  const auto is_before = [](const Fde& a, const Fde& b) { return a.begin < b.begin; };
  if (!std::is_sorted(fdes_.begin(), fdes_.end(), is_before)) std::stable_sort(fdes_.begin(), fdes_.end(), is_before);
  CompiledCfi compiled;
  compiled.rows.reserve(rows_.size() + fdes_.size());
  std::vector<SavedRow> saved_rows;
  saved_rows.reserve(rows_.size());
  for (std::size_t i = 0; i < fdes_.size(); ++i) {
    const Fde& fde = fdes_[i];
    // Where two overlap, the later one begins its own.
    const std::uint32_t limit = i + 1 < fdes_.size() ? fdes_[i + 1].begin : std::numeric_limits<std::uint32_t>::max();
    for (std::size_t row = fde.first_row; row < fde.first_row + fde.row_count; ++row) {
      if (rows_[row].offset >= limit && fde.begin != limit) continue;
      compiled.rows.push_back(rows_[row]);
      saved_rows.push_back(saved_rows_[row]);
    }
    if (fde.end < limit) compiled.rows.push_back({fde.end, UnwindRule::Unknown()});
  }
  SortByOffset(compiled.rows);
  if (architecture_ == CfiArchitecture::kX86_64) {
    SortByOffset(saved_rows);
    compiled.saved_rows = Merged(saved_rows);
  }
  compiled.specials = specials_.Take();
  compiled.statistics = statistics_;
  return compiled;
}

}  // namespace strobe::internal
