// CfiRows: collects the rows of FDEs for a range of addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cfi_state.h"
#include "dwarf_reader.h"
#include "strobe/base/address.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe::internal {

// An FDE's code.
struct FdeRange {
  Address begin = 0;
  Address length = 0;
};

// Reads the range of an FDE's code, and moves `body` on to the FDE's instructions; false if the FDE
// is broken.
bool ReadFdeRange(const CfiEntry& entry, DwarfReader& body, FdeRange& range);

class CfiRows {
 public:
  // Offsets count from `first`. `text_start` and `text_limit` are those of the whole module: a
  // function that reaches beyond them is ignored.
  CfiRows(Architecture architecture, Address text_start, Address text_limit, Address first,
          Address limit)
      : follows_special_(DwarfRegistersOf(architecture).special != kNoRegister),
        registers_(DwarfRegistersOf(architecture)),
        text_start_(text_start),
        text_limit_(text_limit),
        first_(first),
        limit_(limit) {}

  // Adds the rows that the FDE with this body has in the range.
  void Add(const CfiEntry& entry, DwarfReader body);
  void AddBroken(std::size_t count) { statistics_.broken_entries += count; }

  [[nodiscard]] bool is_full() const { return rows_.size() >= kMaxCfiRows; }

  CompiledCfi Take();

 private:
  struct Fde {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::size_t first_row = 0;
    std::size_t row_count = 0;
  };

  std::vector<UnwindRow> Merge();
  // A row that begins before the range is in force at its start.
  [[nodiscard]] std::uint32_t Offset(Address address) const {
    return address <= first_ ? 0 : static_cast<std::uint32_t>(address - first_);
  }

  const bool follows_special_;
  const DwarfRegisters registers_;
  const Address text_start_;
  const Address text_limit_;
  const Address first_;
  const Address limit_;
  std::vector<Fde> fdes_;
  std::vector<UnwindRow> rows_;
  SpecialRules specials_;
  CfiStatistics statistics_;
};

}  // namespace strobe::internal
