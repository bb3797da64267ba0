#include "kept_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "arch/frame_instruction.h"
#include "called_code.h"
#include "strobe/unwind/known_code.h"
#include "unwind/cfi_state.h"

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

// Of the code that one row holds for. Rows that count from such a register are short.
constexpr std::uint32_t kMaxRowBytes = 65536;

// The register that the rule counts from, by its encoding, if a walk knows it for the innermost
// frame alone.
std::optional<unsigned> CountedFrom(UnwindRule rule, const std::vector<SpecialRule>& specials) {
  if (rule.kind() != UnwindRule::Kind::kSpecial) return std::nullopt;
  const SpecialRule& special = specials[rule.special_number()];
  const bool is_counted =
      special.cfa == SpecialRule::Cfa::kOffset || special.cfa == SpecialRule::Cfa::kMemory;
  if (!is_counted || special.cfa_base != SpecialRule::Base::kOther ||
      special.cfa_other == X86_64Registers::kSpecialRegister)
    return std::nullopt;
  for (unsigned number = 0; number < kX86_64GeneralRegisters; ++number) {
    if (X86_64Encoding::ToDwarf(number) == special.cfa_other) return number;
  }
  return std::nullopt;
}

}  // namespace

void KeepRegistersAtCalls(Address start, const AnyMemoryReader& read, CompiledCfi& compiled) {
  CalledCode called(read);
  std::vector<std::uint8_t> code;
  std::vector<std::pair<UnwindRow, std::uint32_t>> kept;  // each with where it ends
  for (std::size_t i = 0; i + 1 < compiled.rows.size(); ++i) {
    const UnwindRow row = compiled.rows[i];
    const std::optional<unsigned> number = CountedFrom(row.rule, compiled.specials);
    const std::uint32_t bytes = compiled.rows[i + 1].offset - row.offset;
    if (!number || bytes > kMaxRowBytes) continue;
    code.resize(bytes);
    code.resize(read(start + row.offset, code));
    for (std::uint32_t at = 0; at < code.size();) {
      const FrameInstruction instruction = DecodeFrameInstruction(std::span(code).subspan(at));
      if (instruction.kind == Kind::kInvalid) break;
      const std::uint32_t end = at + instruction.bytes;
      const bool is_kept =
          instruction.kind == Kind::kCall && instruction.has_target &&
          (called.WrittenBy(TargetOf(instruction, start + row.offset + at)) & SetOf(*number)) == 0;
      if (is_kept) {
        SpecialRule rule = compiled.specials[row.rule.special_number()];
        rule.cfa_base = SpecialRule::Base::kKept;
        UnwindRow of_call = row;
        of_call.offset = row.offset + at;
        of_call.rule = AddSpecialRule(rule, compiled.specials);
        kept.emplace_back(of_call, row.offset + end);
      }
      at = end;
    }
  }
  for (const auto& [row, end] : kept) ReplaceRows(compiled, row.offset, end, {&row, 1});
}

}  // namespace strobe::internal
