// The state of DWARF's call frame machine, as far as an UnwindRule can say it: where the CFA, the
// return address and the frame pointer are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "dwarf_reader.h"
#include "strobe/arch/dwarf_registers.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_rule.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe::internal {

// How one register of the caller is found.
struct CfiValue {
  enum class Kind : std::uint8_t {
    kSame,
    kOffset,
    kRegister,
    kExpression,
    kUndefined,
    kUnsupported
  };
  Kind kind = Kind::kSame;
  std::int64_t number = 0;                   // offset from the CFA, or a register
  std::span<const std::uint8_t> expression;  // of the address where the value lies
};

struct CfiState {
  bool cfa_is_expression = false;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  std::span<const std::uint8_t> cfa_expression;
  CfiValue fp;
  CfiValue ra;
  CfiValue special;
  CfiValue lr;
};

// What an FDE inherits from its CIE.
struct CfiEntry {
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_register = 0;
  std::uint8_t pointer_encoding = 0;
  bool has_augmentation_data = false;
  bool is_signal_frame = false;
  CfiState initial;
};

// Where `state` keeps the caller's special register.
SavedRegister SavedSpecialRegisterOf(const CfiState& state, const DwarfRegisters& registers);

// A rule that names `rule` in `specials`, where it is added once; that of Lost where there are too
// many.
UnwindRule AddSpecialRule(const SpecialRule& rule, std::vector<SpecialRule>& specials);
// The same for code that cannot be followed: see SpecialRule::Cfa::kLost.
UnwindRule AddLostRule(std::vector<SpecialRule>& specials);

// Collects the distinct SpecialRules of a table.
class SpecialRules {
 public:
  // The rule that says what `state` says; that of Lost where no rule can.
  UnwindRule RuleOf(const CfiState& state, const CfiEntry& entry, const DwarfRegisters& registers);
  // The rule of code whose frame information cannot be followed: see SpecialRule::Cfa::kLost.
  UnwindRule Lost() { return AddLostRule(rules_); }
  UnwindRule Add(const SpecialRule& rule) { return AddSpecialRule(rule, rules_); }
  [[nodiscard]] bool IsLost(UnwindRule rule) const {
    return rule.kind() == UnwindRule::Kind::kSpecial &&
           rules_[rule.special_number()].cfa == SpecialRule::Cfa::kLost;
  }
  std::vector<SpecialRule> Take() { return std::move(rules_); }

 private:
  std::vector<SpecialRule> rules_{SpecialRule()};
};

}  // namespace strobe::internal
