#include "strobe/unwind/cfi_compiler.h"

#include <limits>
#include <optional>

#include "cfi_rows.h"
#include "dwarf_reader.h"
#include "eh_frame_reader.h"

namespace strobe {

CompiledCfi CompileCfi(const CfiSource& source) {
  if (source.text_limit <= source.text_start ||
      source.text_limit - source.text_start > std::numeric_limits<std::uint32_t>::max()) {
    CompiledCfi nothing;
    nothing.specials.emplace_back();
    return nothing;
  }
  internal::CfiRows rows(source.architecture, source.text_start, source.text_limit,
                         source.text_start, source.text_limit);
  internal::EhFrameReader reader(source.eh_frame, source.eh_frame_address);
  internal::CieCache cies(source.architecture);
  Address next = source.eh_frame_address;
  while (!rows.is_full()) {
    const std::optional<internal::EhFrameEntry> entry = reader.At(next);
    if (!entry || entry->is_terminator) break;
    next = entry->next;
    if (entry->cie == 0) continue;  // a CIE is read when the first FDE names it
    if (const internal::CfiEntry* cie = cies.At(reader, entry->cie)) rows.Add(*cie, entry->body);
  }
  rows.AddBroken(cies.broken());
  return rows.Take();
}

Address EhFrameAddress(std::span<const std::uint8_t> eh_frame_hdr, Address address) {
  internal::DwarfReader header(eh_frame_hdr, address);
  if (header.Read<std::uint8_t>() != 1) return 0;
  const auto encoding = header.Read<std::uint8_t>();
  header.Skip(2);  // encodings of the count and of the table
  const Address eh_frame = header.ReadPointer(encoding, address);
  return header.ok() ? eh_frame : 0;
}

}  // namespace strobe
