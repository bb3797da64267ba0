// Hand-made .eh_frame bytes: call frame instructions as functions, CIEs and FDEs from them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_table.h"
#include "support/bytes.h"

namespace strobe::testing {

// DWARF's names of the registers.
inline constexpr std::uint8_t kRbx = 3, kRbp = 6, kRsp = 7, kR10 = 10, kRip = 16;
inline constexpr std::uint8_t kX29 = 29, kX30 = 30, kArmSp = 31;

// The instructions, in the order of their codes (DWARF 5, section 7.24).
inline Bytes Advance(std::uint8_t delta) { return {static_cast<std::uint8_t>(0x40 | delta)}; }
inline Bytes Offset(std::uint8_t number, std::uint64_t factored) {
  return Join({{static_cast<std::uint8_t>(0x80 | number)}, Uleb(factored)});
}
inline Bytes Restore(std::uint8_t number) { return {static_cast<std::uint8_t>(0xC0 | number)}; }
inline Bytes Nop() { return {0x00}; }
inline Bytes SetLocation(std::uint64_t address) { return Join({{0x01}, Fixed(address)}); }
inline Bytes Advance1(std::uint8_t delta) { return {0x02, delta}; }
inline Bytes Advance2(std::uint16_t delta) { return Join({{0x03}, Fixed(delta)}); }
inline Bytes Advance4(std::uint32_t delta) { return Join({{0x04}, Fixed(delta)}); }
inline Bytes OffsetExtended(std::uint64_t number, std::uint64_t factored) {
  return Join({{0x05}, Uleb(number), Uleb(factored)});
}
inline Bytes RestoreExtended(std::uint64_t number) { return Join({{0x06}, Uleb(number)}); }
inline Bytes Undefined(std::uint64_t number) { return Join({{0x07}, Uleb(number)}); }
inline Bytes SameValue(std::uint64_t number) { return Join({{0x08}, Uleb(number)}); }
inline Bytes InRegister(std::uint64_t number, std::uint64_t other) {
  return Join({{0x09}, Uleb(number), Uleb(other)});
}
inline Bytes RememberState() { return {0x0A}; }
inline Bytes RestoreState() { return {0x0B}; }
inline Bytes DefCfa(std::uint64_t number, std::uint64_t offset) {
  return Join({{0x0C}, Uleb(number), Uleb(offset)});
}
inline Bytes DefCfaRegister(std::uint64_t number) { return Join({{0x0D}, Uleb(number)}); }
inline Bytes DefCfaOffset(std::uint64_t offset) { return Join({{0x0E}, Uleb(offset)}); }
inline Bytes DefCfaExpression(const Bytes& expression) { return Join({{0x0F}, Block(expression)}); }
inline Bytes Expression(std::uint64_t number, const Bytes& expression) {
  return Join({{0x10}, Uleb(number), Block(expression)});
}
inline Bytes OffsetExtendedSigned(std::uint64_t number, std::int64_t factored) {
  return Join({{0x11}, Uleb(number), Sleb(factored)});
}
inline Bytes DefCfaSigned(std::uint64_t number, std::int64_t factored) {
  return Join({{0x12}, Uleb(number), Sleb(factored)});
}
inline Bytes DefCfaOffsetSigned(std::int64_t factored) { return Join({{0x13}, Sleb(factored)}); }
inline Bytes ValueOffset(std::uint64_t number, std::uint64_t factored) {
  return Join({{0x14}, Uleb(number), Uleb(factored)});
}
inline Bytes ValueOffsetSigned(std::uint64_t number, std::int64_t factored) {
  return Join({{0x15}, Uleb(number), Sleb(factored)});
}
inline Bytes ValueExpression(std::uint64_t number, const Bytes& expression) {
  return Join({{0x16}, Uleb(number), Block(expression)});
}
inline Bytes NegateReturnAddressState() { return {0x2D}; }
inline Bytes ArgumentsSize(std::uint64_t bytes) { return Join({{0x2E}, Uleb(bytes)}); }
inline Bytes NegativeOffsetExtended(std::uint64_t number, std::uint64_t factored) {
  return Join({{0x2F}, Uleb(number), Uleb(factored)});
}

// Expressions: register + offset, and what lies there.
inline Bytes RegisterPlus(std::uint8_t number, std::int64_t offset) {
  return Join({{static_cast<std::uint8_t>(0x70 + number)}, Sleb(offset)});
}
inline Bytes Dereferenced(const Bytes& expression) { return Join({expression, {0x06}}); }
// What linkers write for a PLT: rsp + 8 + ((rip & 15) >= threshold) * 8.
inline Bytes PltExpression(std::uint8_t threshold) {
  return {0x77, 8,    0x80, 0,   0x3F, 0x1A, static_cast<std::uint8_t>(0x30 + threshold),
          0x2A, 0x33, 0x24, 0x22};
}

struct CieOptions {
  std::uint8_t version = 1;
  std::string augmentation = "zR";
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = -8;
  std::uint8_t return_register = kRip;
  Bytes augmentation_data = {0x04};  // pointers are absolute, of 8 bytes
  Bytes program = Join({DefCfa(kRsp, 8), Offset(kRip, 1)});
  bool has_64bit_length = false;
};

inline CieOptions Aarch64Cie() {
  return {.code_alignment = 4, .return_register = kX30, .program = DefCfa(kArmSp, 0)};
}

// The text that the frame information describes.
inline constexpr Address kText = 0x400000;
inline constexpr Address kTextLimit = 0x420000;

class EhFrameBuilder {
 public:
  static constexpr Address kEhFrame = 0x600000;

  // Returns where the CIE stands in the section.
  std::size_t Cie(const CieOptions& options = {}) {
    const std::size_t at = bytes.size();
    Bytes body = Join({Fixed(std::uint32_t{0}), {options.version}});
    body.insert(body.end(), options.augmentation.begin(), options.augmentation.end());
    body.push_back(0);
    if (options.version == 4) body = Join({body, {8, 0}});
    body = Join({body,
                 Uleb(options.code_alignment),
                 Sleb(options.data_alignment),
                 {options.return_register}});
    if (!options.augmentation.empty() && options.augmentation[0] == 'z')
      body = Join({body, Block(options.augmentation_data)});
    Append(Join({body, options.program}), options.has_64bit_length);
    return at;
  }

  // An FDE with absolute pointers, of the CIE at `cie`.
  void Fde(std::size_t cie, Address begin, Address length, const Bytes& program,
           bool has_64bit_length = false) {
    FdeWithHeader(cie, Join({Fixed(begin), Fixed(length), Uleb(0)}), program, has_64bit_length);
  }
  // An FDE whose pointers and augmentation are `header`.
  void FdeWithHeader(std::size_t cie, const Bytes& header, const Bytes& program,
                     bool has_64bit_length = false) {
    const std::size_t id_at = bytes.size() + (has_64bit_length ? 12 : 4);
    Append(Join({Fixed(static_cast<std::uint32_t>(id_at - cie)), header, program}),
           has_64bit_length);
  }
  void Terminate() { bytes = Join({bytes, Fixed(std::uint32_t{0})}); }

  [[nodiscard]] CompiledCfi Compile(Architecture architecture = Architecture::kX86_64) const {
    return CompileCfi({.architecture = architecture,
                       .eh_frame = bytes,
                       .eh_frame_address = kEhFrame,
                       .text_start = kText,
                       .text_limit = kTextLimit});
  }

  Bytes bytes;

 private:
  void Append(const Bytes& body, bool has_64bit_length) {
    bytes = has_64bit_length ? Join({bytes, Fixed(std::uint32_t{0xFFFFFFFF}),
                                     Fixed(std::uint64_t{body.size()}), body})
                             : Join({bytes, Fixed(static_cast<std::uint32_t>(body.size())), body});
  }
};

// The table of what was compiled, and its statistics.
struct CompiledTable {
  explicit CompiledTable(CompiledCfi compiled)
      : table(static_cast<std::uint32_t>(kTextLimit - kText), compiled.rows, compiled.specials),
        rows(std::move(compiled.rows)),
        statistics(compiled.statistics) {}

  [[nodiscard]] UnwindRule At(std::uint32_t offset) const { return table.Find(offset); }
  [[nodiscard]] SpecialRule SpecialAt(std::uint32_t offset) const {
    const UnwindRule rule = table.Find(offset);
    return rule.kind() == UnwindRule::Kind::kSpecial ? table.Special(rule) : SpecialRule();
  }

  UnwindTable table;
  std::vector<UnwindRow> rows;
  CfiStatistics statistics;
};

inline UnwindRule FromSp(std::uint32_t cfa_words, std::uint32_t ra_words = 1,
                         std::uint32_t fp_words = 0) {
  return UnwindRule::Frame(UnwindRule::Kind::kFromSp, cfa_words, ra_words, fp_words);
}
inline UnwindRule FromFp(std::uint32_t cfa_words, std::uint32_t ra_words = 1,
                         std::uint32_t fp_words = 0) {
  return UnwindRule::Frame(UnwindRule::Kind::kFromFp, cfa_words, ra_words, fp_words);
}

inline void PrintTo(const UnwindRule& rule, std::ostream* os) {
  *os << "{kind " << static_cast<int>(rule.kind());
  if (rule.kind() == UnwindRule::Kind::kSpecial) {
    *os << ", number " << rule.special_number() << "}";
  } else {
    *os << ", cfa " << rule.cfa_words() << ", ra " << rule.ra_words() << ", fp " << rule.fp_words()
        << "}";
  }
}

}  // namespace strobe::testing
