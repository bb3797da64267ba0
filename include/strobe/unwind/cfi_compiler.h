// CompileCfi: .eh_frame -> an UnwindTable. Control plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "strobe/arch/registers.h"
#include "strobe/base/address.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {

// Where a module's frame information lies. All addresses are of one space: the process's, or the
// file's own.
struct CfiSource {
  Architecture architecture = Architecture::kX86_64;
  std::span<const std::uint8_t> eh_frame;  // may be longer than the section: a terminator ends it
  Address eh_frame_address = 0;
  Address text_start = 0;
  Address text_limit = 0;
};

struct CfiStatistics {
  std::size_t fdes = 0;
  std::size_t rows = 0;
  std::size_t unknown_rows =
      0;  // rows that say something which no rule expresses: such a frame cannot be left
  std::size_t broken_entries =
      0;  // CIEs and FDEs that could not be read; the others are unaffected

  CfiStatistics& operator+=(const CfiStatistics& other) {
    fdes += other.fdes;
    rows += other.rows;
    unknown_rows += other.unknown_rows;
    broken_entries += other.broken_entries;
    return *this;
  }
};

struct CompiledCfi {
  std::vector<UnwindRow> rows;  // sorted; a gap between functions is a row of UnwindRule::Unknown()
  std::vector<SpecialRule> specials;  // [0] is unknown
  CfiStatistics statistics;
};

// The rows of every FDE whose code lies in the text. Reads nothing outside of `source.eh_frame`,
// whatever that holds, and ends after at most kMaxCfiRows rows.
inline constexpr std::size_t kMaxCfiRows = std::size_t{1} << 24;
CompiledCfi CompileCfi(const CfiSource& source);

// The address of .eh_frame as a .eh_frame_hdr at `address` says it; 0 where the header is broken.
Address EhFrameAddress(std::span<const std::uint8_t> eh_frame_hdr, Address address);

}  // namespace strobe
