#include "strobe/unwind/cfi_compiler.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <unordered_map>

#include "cfi_machine.h"
#include "cfi_state.h"
#include "dwarf_reader.h"

namespace strobe {
namespace {

using internal::CfiEntry;
using internal::CfiMachine;
using internal::CfiRegisters;
using internal::CfiState;
using internal::DwarfReader;

// The frame of one entry of .eh_frame: its length, and its bytes from the id on.
struct RawEntry {
  bool is_terminator = false;
  DwarfReader body;
};
std::optional<RawEntry> NextEntry(DwarfReader& section) {
  std::uint64_t length = section.Read<std::uint32_t>();
  if (!section.ok()) return std::nullopt;
  if (length == 0) return RawEntry{.is_terminator = true, .body = {}};
  if (length == 0xFFFFFFFF) length = section.Read<std::uint64_t>();
  RawEntry entry{.is_terminator = false, .body = section.Sub(length)};
  if (!section.ok()) return std::nullopt;
  return entry;
}

class Compiler {
 public:
  explicit Compiler(const CfiSource& source) : source_(source), registers_(internal::RegistersOf(source.architecture)) {}

  CompiledCfi Compile() {
    DwarfReader section(source_.eh_frame, source_.eh_frame_address);
    while (section.remaining() > 0 && rows_.size() < kMaxCfiRows) {
      std::optional<RawEntry> raw = NextEntry(section);
      if (!raw || raw->is_terminator) break;
      const Address id_address = raw->body.address();
      const auto id = raw->body.Read<std::uint32_t>();
      if (id != 0) AddFde(raw->body, id_address - id);  // a CIE is read when the first FDE names it
    }
    return Finish();
  }

 private:
  struct Fde {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;
    std::size_t first_row = 0;
    std::size_t row_count = 0;
  };

  const CfiEntry* CieAt(Address address) {
    const auto [found, is_new] = cies_.try_emplace(address);
    if (is_new) found->second = ReadCie(address);
    return found->second ? &*found->second : nullptr;
  }

  std::optional<CfiEntry> ReadCie(Address address) {
    std::optional<CfiEntry> entry = TryReadCie(address);
    if (!entry) ++statistics_.broken_entries;
    return entry;
  }

  std::optional<CfiEntry> TryReadCie(Address address) const {
    if (address < source_.eh_frame_address || address - source_.eh_frame_address >= source_.eh_frame.size()) return std::nullopt;
    DwarfReader section(source_.eh_frame.subspan(static_cast<std::size_t>(address - source_.eh_frame_address)), address);
    std::optional<RawEntry> raw = NextEntry(section);
    if (!raw || raw->is_terminator) return std::nullopt;
    DwarfReader& body = raw->body;
    if (body.Read<std::uint32_t>() != 0) return std::nullopt;
    const auto version = body.Read<std::uint8_t>();
    if (version != 1 && version != 3 && version != 4) return std::nullopt;
    char augmentation[16] = {};
    for (std::size_t i = 0;; ++i) {
      if (i == sizeof(augmentation)) return std::nullopt;
      augmentation[i] = static_cast<char>(body.Read<std::uint8_t>());
      if (augmentation[i] == 0) break;
    }
    if (version == 4) body.Skip(2);  // sizes of an address and of a segment
    CfiEntry entry;
    entry.code_alignment = body.ReadUleb();
    entry.data_alignment = body.ReadSleb();
    entry.return_register = version == 1 ? body.Read<std::uint8_t>() : body.ReadUleb();
    if (augmentation[0] == 'z') {
      entry.has_augmentation_data = true;
      DwarfReader data = body.Sub(body.ReadUleb());
      for (const char* letter = augmentation + 1; *letter != 0; ++letter) {
        switch (*letter) {
          case 'R': entry.pointer_encoding = data.Read<std::uint8_t>(); break;
          case 'P': data.ReadPointer(data.Read<std::uint8_t>() & 0x7F); break;
          case 'L': data.Read<std::uint8_t>(); break;
          case 'S': entry.is_signal_frame = true; break;
          default: break;  // 'B' signs pointers with the other key; others end in the data that is skipped as a whole
        }
      }
      if (!data.ok()) return std::nullopt;
    } else if (augmentation[0] != 0) {
      return std::nullopt;  // "eh" of compilers before 3.0, whose fields nobody can skip
    }
    if (!body.ok()) return std::nullopt;
    CfiMachine machine(entry, registers_);
    if (!machine.Run(body, 0, [](Address, const CfiState&) {})) return std::nullopt;
    entry.initial = machine.state();
    return entry;
  }

  void AddFde(DwarfReader body, Address cie_address) {
    const CfiEntry* entry = CieAt(cie_address);
    if (entry == nullptr) return;
    const Address begin = body.ReadPointer(entry->pointer_encoding);
    const Address length = body.ReadPointer(entry->pointer_encoding & 0x0F);
    if (entry->has_augmentation_data) body.Skip(body.ReadUleb());
    if (!body.ok()) {
      ++statistics_.broken_entries;
      return;
    }
    // A linker that drops a function may leave its FDE, with an address outside of the text.
    if (length == 0 || begin < source_.text_start || begin >= source_.text_limit || length > source_.text_limit - begin) return;
    ++statistics_.fdes;
    Fde fde{.begin = Offset(begin), .end = Offset(begin + length), .first_row = rows_.size(), .row_count = 0};
    CfiMachine machine(*entry, registers_);
    const bool is_whole = machine.Run(body, begin, [&](Address location, const CfiState& state) {
      if (location < begin || location >= begin + length || rows_.size() >= kMaxCfiRows) return;
      const UnwindRule rule = specials_.RuleOf(state, *entry, registers_);
      ++statistics_.rows;
      statistics_.unknown_rows += rule == UnwindRule::Unknown() ? 1 : 0;
      rows_.push_back({Offset(location), rule});
      if (source_.architecture == CfiArchitecture::kX86_64) saved_rows_.push_back(SavedRowOf(Offset(location), state, registers_));
    });
    if (!is_whole) {
      // From the last row on nothing can be trusted.
      ++statistics_.broken_entries;
      if (rows_.size() == fde.first_row) {
        rows_.push_back({fde.begin, UnwindRule::Unknown()});
      } else {
        rows_.back().rule = UnwindRule::Unknown();
      }
    }
    fde.row_count = rows_.size() - fde.first_row;
    fdes_.push_back(fde);
  }

  [[nodiscard]] std::uint32_t Offset(Address address) const { return static_cast<std::uint32_t>(address - source_.text_start); }

  CompiledCfi Finish() {
    std::stable_sort(fdes_.begin(), fdes_.end(), [](const Fde& a, const Fde& b) { return a.begin < b.begin; });
    CompiledCfi compiled;
    compiled.rows.reserve(rows_.size() + fdes_.size());
    for (std::size_t i = 0; i < fdes_.size(); ++i) {
      const Fde& fde = fdes_[i];
      // Where two overlap, the later one begins its own.
      const std::uint32_t limit = i + 1 < fdes_.size() ? fdes_[i + 1].begin : std::numeric_limits<std::uint32_t>::max();
      for (std::size_t row = fde.first_row; row < fde.first_row + fde.row_count; ++row) {
        if (rows_[row].offset < limit || fde.begin == limit) compiled.rows.push_back(rows_[row]);
      }
      if (fde.end < limit) compiled.rows.push_back({fde.end, UnwindRule::Unknown()});
    }
    std::stable_sort(compiled.rows.begin(), compiled.rows.end(),
                     [](const UnwindRow& a, const UnwindRow& b) { return a.offset < b.offset; });
    compiled.saved_rows = FinishSaved();
    compiled.specials = specials_.Take();
    compiled.statistics = statistics_;
    return compiled;
  }

  // Rows that say something new. Between functions the last one's row goes on: nobody asks there, for want of a rule.
  std::vector<SavedRow> FinishSaved() {
    std::stable_sort(saved_rows_.begin(), saved_rows_.end(), [](const SavedRow& a, const SavedRow& b) { return a.offset < b.offset; });
    std::vector<SavedRow> rows;
    for (const SavedRow& row : saved_rows_) {
      if (!rows.empty() && rows.back().offset == row.offset) rows.pop_back();
      if (rows.empty() || rows.back().where != row.where || rows.back().distance != row.distance) rows.push_back(row);
    }
    return rows;
  }

  const CfiSource& source_;
  const CfiRegisters registers_;
  std::unordered_map<Address, std::optional<CfiEntry>> cies_;
  std::vector<Fde> fdes_;
  std::vector<UnwindRow> rows_;
  std::vector<SavedRow> saved_rows_;
  internal::SpecialRules specials_;
  CfiStatistics statistics_;
};

}  // namespace

CompiledCfi CompileCfi(const CfiSource& source) {
  if (source.text_limit <= source.text_start || source.text_limit - source.text_start > std::numeric_limits<std::uint32_t>::max()) {
    CompiledCfi nothing;
    nothing.specials.emplace_back();
    return nothing;
  }
  return Compiler(source).Compile();
}

Address EhFrameAddress(std::span<const std::uint8_t> eh_frame_hdr, Address address) {
  DwarfReader header(eh_frame_hdr, address);
  if (header.Read<std::uint8_t>() != 1) return 0;
  const auto encoding = header.Read<std::uint8_t>();
  header.Skip(2);  // encodings of the count and of the table
  const Address eh_frame = header.ReadPointer(encoding, address);
  return header.ok() ? eh_frame : 0;
}

EhFrameExtent MeasureEhFrame(std::span<const std::uint8_t> eh_frame) {
  DwarfReader section(eh_frame, 0);
  EhFrameExtent extent;
  while (section.remaining() > 0) {
    const std::optional<RawEntry> raw = NextEntry(section);
    if (!raw) break;
    extent.bytes = section.position();
    extent.is_terminated = raw->is_terminator;
    if (raw->is_terminator) break;
  }
  return extent;
}

}  // namespace strobe
