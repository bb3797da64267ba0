// DwarfSource: the source lines of an image's code, from its debug information.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dwarf_file.h"
#include "dwarf_index.h"
#include "dwarf_split.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// Every byte of the files may be broken or hostile: that costs lines. The work for a unit is
// bounded by its size, and by the number of addresses.
class DwarfSource {
 public:
  struct Files {
    std::unique_ptr<DwarfFile> main;
    std::unique_ptr<DwarfFile> supplement;  // see DwarfFile; may be nullptr
    SplitUnits split;
  };
  // `index` is that of the main file, which Find completes; it must outlive this. A unit of more
  // than `max_unit_bytes` has no lines. One unit is in memory at a time.
  DwarfSource(Files files, DwarfIndex& index, std::size_t max_unit_bytes);

  // Called with an address and its frames, innermost first: none if nothing is known.
  using Found = std::function<void(std::uint64_t address, std::span<const SourceFrame> frames)>;

  // Calls `found` once for each of `addresses`, which are sorted and distinct: unit by unit, those
  // with the most addresses first. Stops when `is_late` returns true, but not before it has done
  // something that the next call need not do again. Returns true if all addresses are done.
  bool Find(std::span<const std::uint64_t> addresses, const std::function<bool()>& is_late,
            const Found& found);

 private:
  void FindInUnit(std::uint64_t position, std::span<const std::uint64_t> addresses,
                  const Found& found);

  Files files_;
  DwarfIndex* index_;
  std::size_t max_unit_bytes_;
};

}  // namespace strobe::internal
