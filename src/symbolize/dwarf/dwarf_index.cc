#include "dwarf_index.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <utility>

namespace strobe::internal {

void DwarfIndex::Advance(DwarfFile& file, const std::function<bool()>& is_late) {
  if (is_complete_) return;
  const std::vector<std::uint64_t>& positions = file.UnitPositions();
  while (next_unit_ < positions.size() && ranges_.size() < kMaxIndexedRanges) {
    Add(file, positions[next_unit_++]);
    if (is_late()) return;
  }
  Complete();
}

void DwarfIndex::Add(DwarfFile& file, std::uint64_t position) {
  const std::shared_ptr<const DwarfUnit> unit = file.UnitAt(position);
  if (unit == nullptr) return;
  const std::size_t first = ranges_.size();
  VisitRanges(file, *unit, unit->low_pc, unit->high_pc, unit->ranges,
              [&](std::uint64_t begin, std::uint64_t end) {
                if (ranges_.size() < kMaxIndexedRanges) ranges_.push_back({begin, end, position});
              });
  // The ranges of a unit often follow each other.
  const auto order = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  const auto begin = ranges_.begin() + static_cast<std::ptrdiff_t>(first);
  std::sort(begin, ranges_.end(), order);
  std::size_t kept = first;
  for (std::size_t i = first; i < ranges_.size(); ++i) {
    if (kept > first && ranges_[i].begin <= ranges_[kept - 1].end) {
      ranges_[kept - 1].end = std::max(ranges_[kept - 1].end, ranges_[i].end);
    } else {
      ranges_[kept++] = ranges_[i];
    }
  }
  ranges_.resize(kept);
}

void DwarfIndex::Complete() {
  std::sort(ranges_.begin(), ranges_.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> parts;  // that do not overlap
  // The ranges at the current address, by unit.
  std::set<std::pair<std::uint64_t, std::uint64_t>> open;  // unit, end
  const auto close_until = [&](std::uint64_t& begin, std::uint64_t limit) {
    while (begin < limit && !open.empty()) {
      const auto [unit, end] = *open.begin();
      const std::uint64_t part_end = std::min(end, limit);
      if (begin < part_end) {
        if (!parts.empty() && parts.back().unit == unit && parts.back().end == begin) {
          parts.back().end = part_end;
        } else {
          parts.push_back({begin, part_end, unit});
        }
        begin = part_end;
      }
      if (end <= begin) open.erase(open.begin());
    }
    begin = std::max(begin, limit);
  };
  std::uint64_t position = 0;
  for (const Range& range : ranges_) {
    close_until(position, range.begin);
    open.emplace(range.unit, range.end);
  }
  close_until(position, std::numeric_limits<std::uint64_t>::max());
  parts.shrink_to_fit();
  ranges_ = std::move(parts);
  is_complete_ = true;
}

std::optional<std::uint64_t> DwarfIndex::Find(std::uint64_t address) const {
  const auto after =
      std::upper_bound(ranges_.begin(), ranges_.end(), address,
                       [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (after == ranges_.begin() || address >= (after - 1)->end) return std::nullopt;
  return (after - 1)->unit;
}

}  // namespace strobe::internal
