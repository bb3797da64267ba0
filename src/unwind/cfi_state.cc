#include "cfi_state.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "strobe/unwind/dwarf_expression.h"

namespace strobe::internal {
namespace {

// register + offset, or what lies there.
struct BaseOffset {
  std::uint64_t base = 0;
  std::int64_t offset = 0;
  bool is_dereferenced = false;
};

std::optional<BaseOffset> ParseBaseOffset(std::span<const std::uint8_t> expression) {
  DwarfReader reader(expression, 0);
  const auto operation = reader.Read<std::uint8_t>();
  if (operation < kOpBreg0 || operation >= kOpBreg0 + 32) return std::nullopt;
  BaseOffset result{.base = static_cast<std::uint64_t>(operation - kOpBreg0),
                    .offset = reader.ReadSleb()};
  if (reader.remaining() > 0) {
    if (reader.Read<std::uint8_t>() != kOpDeref) return std::nullopt;
    result.is_dereferenced = true;
  }
  if (!reader.ok() || reader.remaining() != 0) return std::nullopt;
  return result;
}

bool Fits(std::int64_t offset) {
  return offset >= std::numeric_limits<std::int32_t>::min() &&
         offset <= std::numeric_limits<std::int32_t>::max();
}

// A slot below the CFA as a count of words, if it is one that a plain rule can hold.
std::optional<std::uint32_t> SlotWords(const CfiValue& value, bool same_is_zero) {
  if (value.kind == CfiValue::Kind::kSame && same_is_zero) return 0;
  if (value.kind != CfiValue::Kind::kOffset || value.number >= 0 || value.number % 8 != 0)
    return std::nullopt;
  const std::int64_t words = value.number / -8;  // the least of all numbers has no opposite
  if (words > UnwindRule::kMaxSlotWords) return std::nullopt;
  return static_cast<std::uint32_t>(words);
}

// Sets the base of an offset; false where the register is none that a walk recovers for the
// innermost frame.
bool SetBase(std::uint64_t base, const DwarfRegisters& registers, SpecialRule::Base& kind,
             std::uint8_t& other) {
  kind = base == registers.sp   ? SpecialRule::Base::kSp
         : base == registers.fp ? SpecialRule::Base::kFp
                                : SpecialRule::Base::kOther;
  other = static_cast<std::uint8_t>(base);
  if (kind != SpecialRule::Base::kOther) other = 0;
  return base < 32;
}

bool SetLocation(const CfiValue& value, const DwarfRegisters& registers,
                 SpecialRule::Location& location) {
  switch (value.kind) {
    case CfiValue::Kind::kSame: location.where = SpecialRule::Where::kUnchanged; return true;
    case CfiValue::Kind::kUndefined: location.where = SpecialRule::Where::kUndefined; return true;
    case CfiValue::Kind::kUnsupported: return false;
    case CfiValue::Kind::kOffset:
      location = {.where = SpecialRule::Where::kMemory,
                  .base = SpecialRule::Base::kCfa,
                  .offset = static_cast<std::int32_t>(value.number)};
      return Fits(value.number);
    case CfiValue::Kind::kRegister:
      location.where = SpecialRule::Where::kRegister;
      return SetBase(static_cast<std::uint64_t>(value.number), registers, location.base,
                     location.other);
    case CfiValue::Kind::kExpression: {
      const std::optional<BaseOffset> at = ParseBaseOffset(value.expression);
      if (!at || at->is_dereferenced || !Fits(at->offset)) return false;
      location.where = SpecialRule::Where::kMemory;
      location.offset = static_cast<std::int32_t>(at->offset);
      return SetBase(at->base, registers, location.base, location.other);
    }
  }
  return false;
}

bool SetExpression(std::span<const std::uint8_t> expression, SpecialRule& rule) {
  if (expression.size() > SpecialRule::Expression::kMaxBytes || !IsEvaluable(expression))
    return false;
  rule.cfa = SpecialRule::Cfa::kExpression;
  rule.expression.size = static_cast<std::uint8_t>(expression.size());
  std::copy(expression.begin(), expression.end(), rule.expression.bytes.begin());
  return true;
}

bool SetCfa(const CfiState& state, const DwarfRegisters& registers, SpecialRule& rule) {
  if (!state.cfa_is_expression) {
    rule.cfa = SpecialRule::Cfa::kOffset;
    rule.cfa_offset = static_cast<std::int32_t>(state.cfa_offset);
    return Fits(state.cfa_offset) &&
           SetBase(state.cfa_register, registers, rule.cfa_base, rule.cfa_other);
  }
  const std::optional<BaseOffset> at = ParseBaseOffset(state.cfa_expression);
  if (!at || !Fits(at->offset)) return SetExpression(state.cfa_expression, rule);
  rule.cfa = at->is_dereferenced ? SpecialRule::Cfa::kMemory : SpecialRule::Cfa::kOffset;
  rule.cfa_offset = static_cast<std::int32_t>(at->offset);
  return SetBase(at->base, registers, rule.cfa_base, rule.cfa_other);
}

}  // namespace

SavedRegister SavedSpecialRegisterOf(const CfiState& state, const DwarfRegisters& registers) {
  constexpr std::int64_t kMaxDistance = (std::int64_t{1} << 29) - 1;
  const auto saved = [](SavedRegister::Where where, std::int64_t distance) {
    if (distance > kMaxDistance || distance < -kMaxDistance) return SavedRegister();
    return SavedRegister{.where = where, .distance = static_cast<std::int32_t>(distance)};
  };
  if (state.special.kind == CfiValue::Kind::kSame) return saved(SavedRegister::kUnchanged, 0);
  if (state.special.kind == CfiValue::Kind::kOffset)
    return saved(SavedRegister::kFromCfa, state.special.number);
  if (state.special.kind == CfiValue::Kind::kExpression) {
    const std::optional<BaseOffset> at = ParseBaseOffset(state.special.expression);
    if (at && !at->is_dereferenced && at->base == registers.sp)
      return saved(SavedRegister::kFromSp, at->offset);
  }
  return {};
}

UnwindRule SpecialRules::RuleOf(const CfiState& state, const CfiEntry& entry,
                                const DwarfRegisters& registers) {
  if (state.ra.kind == CfiValue::Kind::kUndefined) return UnwindRule::Stop();
  const bool has_plain_cfa =
      !state.cfa_is_expression &&
      (state.cfa_register == registers.sp || state.cfa_register == registers.fp) &&
      state.cfa_offset >= 0 && state.cfa_offset % 8 == 0 &&
      state.cfa_offset / 8 <= UnwindRule::kMaxCfaWords;
  const std::optional<std::uint32_t> ra = SlotWords(state.ra, registers.ra_is_register());
  const std::optional<std::uint32_t> fp = SlotWords(state.fp, true);
  const bool has_plain_ra =
      registers.ra_is_register() ? ra && (ra == 0u || ra != fp) : ra == 1u && fp != 1u;
  if (has_plain_cfa && has_plain_ra && fp && !entry.is_signal_frame) {
    const auto kind =
        state.cfa_register == registers.sp ? UnwindRule::Kind::kFromSp : UnwindRule::Kind::kFromFp;
    return UnwindRule::Frame(kind, static_cast<std::uint32_t>(state.cfa_offset / 8), *ra, *fp);
  }
  SpecialRule rule;
  rule.is_signal_frame = entry.is_signal_frame;
  const bool is_lost = state.ra.kind == CfiValue::Kind::kSame && !registers.ra_is_register();
  if (is_lost || !SetCfa(state, registers, rule) || !SetLocation(state.ra, registers, rule.ra) ||
      !SetLocation(state.fp, registers, rule.fp) ||
      (rule.is_signal_frame && !SetLocation(state.lr, registers, rule.lr))) {
    return Lost();
  }
  return AddSpecialRule(rule, rules_);
}

UnwindRule AddSpecialRule(const SpecialRule& rule, std::vector<SpecialRule>& specials) {
  for (std::size_t i = 1; i < specials.size(); ++i) {
    if (specials[i] == rule) return UnwindRule::Special(static_cast<std::uint32_t>(i));
  }
  // A library has a dozen; a file that has more than this many is hostile.
  constexpr std::size_t kMaxSpecialRules = 4096;
  if (specials.size() == kMaxSpecialRules) return UnwindRule::Unknown();
  if (specials.size() + 1 == kMaxSpecialRules && rule.cfa != SpecialRule::Cfa::kLost)
    return AddLostRule(specials);
  specials.push_back(rule);
  return UnwindRule::Special(static_cast<std::uint32_t>(specials.size() - 1));
}

UnwindRule AddLostRule(std::vector<SpecialRule>& specials) {
  SpecialRule rule;
  rule.cfa = SpecialRule::Cfa::kLost;
  return AddSpecialRule(rule, specials);
}

}  // namespace strobe::internal
