// DwarfIndex: which unit of a file has the code at an address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "dwarf_file.h"

namespace strobe::internal {

// Filled by Advance, in several calls where there is little time. The index of a large program has
// a few megabytes. Where several units claim the same code, as they do for inline functions of
// which the linker has kept one copy, the first unit has it: linkers keep the first copy.
class DwarfIndex {
 public:
  // Units beyond this have no lines.
  static constexpr std::size_t kMaxIndexedRanges = std::size_t{1} << 22;

  // Adds units until all are there, or until `is_late` returns true; at least one.
  void Advance(DwarfFile& file, const std::function<bool()>& is_late);

  [[nodiscard]] bool is_complete() const { return is_complete_; }

  // The position of the unit that has code at `address`. Only of a complete index.
  [[nodiscard]] std::optional<std::uint64_t> Find(std::uint64_t address) const;

  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + ranges_.capacity() * sizeof(Range);
  }

 private:
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t unit = 0;
  };

  // Adds the ranges of the unit at `position`.
  void Add(DwarfFile& file, std::uint64_t position);
  // Sorts the ranges, and cuts those that overlap.
  void Complete();

  std::vector<Range> ranges_;
  std::size_t next_unit_ = 0;
  bool is_complete_ = false;
};

}  // namespace strobe::internal
