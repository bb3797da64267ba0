// A rule in the words of `readelf --debug-dump=frames-interp`: "rsp+16", "c-8", "exp", "u".
#pragma once

#include <cstdlib>
#include <string>

#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe::testing {

// How to find the CFA, the caller's frame pointer and the return address.
struct RowText {
  std::string cfa;
  std::string fp;
  std::string ra;
  std::string rbx;  // of the caller, for x86-64
  friend bool operator==(const RowText&, const RowText&) = default;
};

inline std::string DwarfRegisterName(Architecture architecture, unsigned number) {
  static constexpr const char* kX86_64[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi",
                                            "rbp", "rsp", "r8",  "r9",  "r10", "r11",
                                            "r12", "r13", "r14", "r15", "rip"};
  if (architecture == Architecture::kX86_64)
    return number < std::size(kX86_64) ? kX86_64[number] : "r" + std::to_string(number);
  return number == 31 ? "sp" : "x" + std::to_string(number);
}

inline std::string SignedText(std::int64_t value) {
  return (value < 0 ? "-" : "+") + std::to_string(std::abs(value));
}

class RuleTexts {
 public:
  explicit RuleTexts(Architecture architecture) : architecture_(architecture) {}

  // What the table says of the code at `offset`.
  [[nodiscard]] RowText Of(const UnwindTable& table, std::uint32_t offset) const {
    RowText text = OfRule(table, table.Find(offset));
    text.rbx = architecture_ == Architecture::kX86_64 && text.cfa != "unknown"
                   ? OfSaved(table.FindSpecialRegister(offset))
                   : "";
    return text;
  }

  [[nodiscard]] std::string Fp() const {
    return architecture_ == Architecture::kX86_64 ? "rbp" : "x29";
  }
  [[nodiscard]] std::string Sp() const {
    return architecture_ == Architecture::kX86_64 ? "rsp" : "sp";
  }

 private:
  [[nodiscard]] RowText OfRule(const UnwindTable& table, UnwindRule rule) const {
    switch (rule.kind()) {
      case UnwindRule::Kind::kStop: return {"", "", "end", ""};
      case UnwindRule::Kind::kSpecial: return OfSpecial(table.Special(rule));
      case UnwindRule::Kind::kFromSp:
      case UnwindRule::Kind::kFromFp: break;
    }
    const auto slot = [](std::uint32_t words) {
      return words == 0 ? "u" : "c" + SignedText(-8 * std::int64_t{words});
    };
    return {(rule.kind() == UnwindRule::Kind::kFromSp ? Sp() : Fp()) +
                SignedText(8 * std::int64_t{rule.cfa_words()}),
            slot(rule.fp_words()), slot(rule.ra_words()), ""};
  }

  static std::string OfSaved(const SavedRegister& row) {
    switch (row.where) {
      case SavedRegister::kUnchanged: return "u";
      case SavedRegister::kFromCfa: return "c" + SignedText(row.distance);
      case SavedRegister::kFromSp: return "exp [rsp" + SignedText(row.distance) + "]";
      default: return "unknown";
    }
  }

  [[nodiscard]] std::string BaseName(SpecialRule::Base base, unsigned other) const {
    switch (base) {
      case SpecialRule::Base::kSp: return Sp();
      case SpecialRule::Base::kFp: return Fp();
      case SpecialRule::Base::kCfa: return "c";
      case SpecialRule::Base::kOther:
      case SpecialRule::Base::kKept: return DwarfRegisterName(architecture_, other);
    }
    return "?";
  }

  [[nodiscard]] std::string OfLocation(const SpecialRule::Location& location) const {
    const std::string base = BaseName(location.base, location.other);
    switch (location.where) {
      case SpecialRule::Where::kUnchanged:
      case SpecialRule::Where::kUndefined: return "u";
      case SpecialRule::Where::kRegister: return base;
      case SpecialRule::Where::kMemory:
        return location.base == SpecialRule::Base::kCfa
                   ? base + SignedText(location.offset)
                   : "exp [" + base + SignedText(location.offset) + "]";
    }
    return "?";
  }

  [[nodiscard]] RowText OfSpecial(const SpecialRule& rule) const {
    if (rule.cfa == SpecialRule::Cfa::kUnknown) return {"unknown", "", "", ""};
    std::string cfa = BaseName(rule.cfa_base, rule.cfa_other) + SignedText(rule.cfa_offset);
    if (rule.cfa == SpecialRule::Cfa::kExpression) cfa = "exp";
    if (rule.cfa == SpecialRule::Cfa::kMemory) cfa = "exp [" + cfa + "]";
    return {cfa, OfLocation(rule.fp), OfLocation(rule.ra), ""};
  }

  Architecture architecture_;
};

}  // namespace strobe::testing
