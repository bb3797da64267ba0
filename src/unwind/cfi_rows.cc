#include "cfi_rows.h"

#include <algorithm>
#include <limits>

#include "cfi_machine.h"

namespace strobe::internal {
namespace {

bool IsBefore(const UnwindRow& a, const UnwindRow& b) { return a.offset < b.offset; }

}  // namespace

bool ReadFdeRange(const CfiEntry& entry, DwarfReader& body, FdeRange& range) {
  range.begin = body.ReadPointer(entry.pointer_encoding);
  range.length = body.ReadPointer(entry.pointer_encoding & 0x0F);
  if (entry.has_augmentation_data) body.Skip(body.ReadUleb());
  return body.ok();
}

void CfiRows::Add(const CfiEntry& entry, DwarfReader body) {
  FdeRange range;
  if (!ReadFdeRange(entry, body, range)) return AddBroken(1);
  const Address begin = range.begin;
  const Address length = range.length;
  // A linker that drops a function may leave its FDE, with an address outside of the text.
  if (length == 0 || begin < text_start_ || begin >= text_limit_ || length > text_limit_ - begin)
    return;
  const Address end = begin + length;
  if (end <= first_ || begin >= limit_) return;
  statistics_.fdes += begin >= first_ ? 1 : 0;
  Fde fde{.begin = Offset(begin),
          .end = Offset(std::min(end, limit_)),
          .first_row = rows_.size(),
          .row_count = 0};
  CfiMachine machine(entry, registers_);
  const bool is_whole = machine.Run(body, begin, [&](Address location, const CfiState& state) {
    if (location < begin || location >= end || location >= limit_ || is_full()) return;
    const UnwindRule rule = specials_.RuleOf(state, entry, registers_);
    if (location >= first_) {
      ++statistics_.rows;
      statistics_.unknown_rows += specials_.IsLost(rule) ? 1 : 0;
    }
    rows_.push_back(
        {Offset(location), rule,
         follows_special_ ? SavedSpecialRegisterOf(state, registers_) : SavedRegister()});
  });
  if (!is_whole) {
    // The last row cannot be trusted, nor can anything after it.
    AddBroken(1);
    if (rows_.size() == fde.first_row) {
      rows_.push_back({fde.begin, specials_.Lost()});
    } else {
      rows_.back().rule = specials_.Lost();
    }
  }
  rows_.push_back({fde.end, UnwindRule::Unknown()});
  fde.row_count = rows_.size() - fde.first_row;
  fdes_.push_back(fde);
}

// The rows of all FDEs in the order of the code, for FDEs that are in another order or overlap.
std::vector<UnwindRow> CfiRows::Merge() {
  std::stable_sort(fdes_.begin(), fdes_.end(),
                   [](const Fde& a, const Fde& b) { return a.begin < b.begin; });
  std::vector<UnwindRow> merged;
  merged.reserve(rows_.size());
  for (std::size_t i = 0; i < fdes_.size(); ++i) {
    const Fde& fde = fdes_[i];
    // If two overlap, the later one counts from its start on.
    const std::uint32_t limit =
        i + 1 < fdes_.size() ? fdes_[i + 1].begin : std::numeric_limits<std::uint32_t>::max();
    for (std::size_t row = fde.first_row; row < fde.first_row + fde.row_count; ++row) {
      if (rows_[row].offset < limit ||
          (fde.begin == limit && row + 1 < fde.first_row + fde.row_count))
        merged.push_back(rows_[row]);
    }
  }
  // Rows are still out of order only if their own FDE has them so.
  if (!std::is_sorted(merged.begin(), merged.end(), IsBefore))
    std::stable_sort(merged.begin(), merged.end(), IsBefore);
  return merged;
}

CompiledCfi CfiRows::Take() {
  CompiledCfi compiled;
  compiled.rows = std::is_sorted(rows_.begin(), rows_.end(), IsBefore) ? std::move(rows_) : Merge();
  compiled.specials = specials_.Take();
  compiled.statistics = statistics_;
  return compiled;
}

}  // namespace strobe::internal
