#include "decoded_row.h"

#include <cstddef>
#include <cstdint>

#include "strobe/unwind/dwarf_expression.h"
#include "unwind/cfi_state.h"

namespace strobe::internal {
namespace {

// A register that the words of an aligned frame can be counted from: fp if that points there,
// because it moves less than sp does.
unsigned FrameBase(const DecodedFrame& frame) {
  return frame.places[DecodedFrame::kFp].base == FramePlace::kAnchor ? DecodedFrame::kFp
                                                                     : DecodedFrame::kSp;
}

bool IsFromCfa(const DecodedFrame& frame, unsigned number) {
  return frame.places[number].base == FramePlace::kCfa;
}

// A register that a walk may know for the innermost frame alone, and whose value counts from the
// CFA.
std::optional<unsigned> OtherFromCfa(const DecodedFrame& frame) {
  if (IsFromCfa(frame, DecodedFrame::kSpecial)) return DecodedFrame::kSpecial;
  for (const unsigned number : DecodedFrame::kOthers) {
    if (IsFromCfa(frame, number)) return number;
  }
  return std::nullopt;
}

void SetBase(unsigned number, SpecialRule::Base& base, std::uint8_t& other) {
  base = number == DecodedFrame::kSp   ? SpecialRule::Base::kSp
         : number == DecodedFrame::kFp ? SpecialRule::Base::kFp
                                       : SpecialRule::Base::kOther;
  if (base == SpecialRule::Base::kOther)
    other = static_cast<std::uint8_t>(X86_64Encoding::ToDwarf(number));
}

void Append(SpecialRule::Expression& expression, std::uint8_t byte) {
  expression.bytes[expression.size++] = byte;
}
void AppendLeb(SpecialRule::Expression& expression, std::int64_t value, bool is_signed) {
  while (true) {
    const auto low = static_cast<std::uint8_t>(value & 0x7F);
    value >>= 7;
    const bool is_last =
        is_signed ? (value == 0 && (low & 0x40) == 0) || (value == -1 && (low & 0x40) != 0)
                  : value == 0;
    Append(expression, is_last ? low : low | 0x80);
    if (is_last) return;
  }
}

// CFA = [base + offset] + distance.
void SetLinkedCfa(const DecodedFrame& frame, SpecialRule& rule) {
  const unsigned base = FrameBase(frame);
  const std::int32_t offset = frame.link.offset - frame.places[base].offset;
  const std::int32_t distance = -frame.link_place.offset;
  if (distance == 0) {
    rule.cfa = SpecialRule::Cfa::kMemory;
    rule.cfa_offset = offset;
    SetBase(base, rule.cfa_base, rule.cfa_other);
    return;
  }
  rule.cfa = SpecialRule::Cfa::kExpression;
  Append(rule.expression, static_cast<std::uint8_t>(kOpBreg0 + (X86_64Encoding::ToDwarf(base))));
  AppendLeb(rule.expression, offset, true);
  Append(rule.expression, kOpDeref);
  Append(rule.expression, kOpPlusUconst);
  AppendLeb(rule.expression, distance, false);
}

void SetCounted(const DecodedFrame& frame, unsigned number, SpecialRule& rule) {
  rule.cfa = SpecialRule::Cfa::kOffset;
  rule.cfa_offset = -frame.places[number].offset;
  SetBase(number, rule.cfa_base, rule.cfa_other);
}

// By a register that the walk knows in each frame, by a word of the frame, or by another register.
bool SetCfa(const DecodedFrame& frame, SpecialRule& rule) {
  const bool has_link = frame.link.base == FramePlace::kAnchor && frame.link_place.offset <= 0;
  if (IsFromCfa(frame, DecodedFrame::kSp)) {
    SetCounted(frame, DecodedFrame::kSp, rule);
  } else if (IsFromCfa(frame, DecodedFrame::kFp)) {
    SetCounted(frame, DecodedFrame::kFp, rule);
  } else if (has_link) {
    SetLinkedCfa(frame, rule);
  } else if (const std::optional<unsigned> other = OtherFromCfa(frame)) {
    SetCounted(frame, *other, rule);
  } else {
    return false;
  }
  return true;
}

// The word at `slot`.
SpecialRule::Location LocationOf(const DecodedFrame& frame, FramePlace slot) {
  SpecialRule::Location location{.where = SpecialRule::Where::kMemory,
                                 .base = SpecialRule::Base::kCfa,
                                 .other = 0,
                                 .offset = slot.offset};
  if (slot.base != FramePlace::kAnchor) return location;
  const unsigned base = FrameBase(frame);
  location.offset -= frame.places[base].offset;
  SetBase(base, location.base, location.other);
  return location;
}

// The word at `slot` can be found by FrameBase.
bool IsReached(const DecodedFrame& frame, FramePlace slot) {
  return slot.base != FramePlace::kAnchor ||
         frame.places[FrameBase(frame)].base == FramePlace::kAnchor;
}

SavedRegister SavedSpecial(const DecodedFrame& frame) {
  const KeptRegister& special = frame.special;
  if (special.state == KeptRegister::kLost) return {};
  if (!special.is_on_stack()) return {.where = SavedRegister::kUnchanged};
  if (special.slot.base == FramePlace::kCfa)
    return {.where = SavedRegister::kFromCfa, .distance = special.slot.offset};
  if (frame.sp().base != FramePlace::kAnchor) return {};
  return {.where = SavedRegister::kFromSp, .distance = special.slot.offset - frame.sp().offset};
}

std::optional<UnwindRule> PlainRule(const DecodedFrame& frame) {
  const bool is_from_sp = frame.sp().base == FramePlace::kCfa;
  const FramePlace base = is_from_sp ? frame.sp() : frame.places[DecodedFrame::kFp];
  const FramePlace slot = frame.fp.is_on_stack() ? frame.fp.slot : FramePlace{FramePlace::kCfa, 0};
  const std::int32_t depth = -base.offset;
  const std::int32_t fp_depth = -slot.offset;
  if (base.base != FramePlace::kCfa || slot.base != FramePlace::kCfa || depth < 8 ||
      depth % 8 != 0 || fp_depth % 8 != 0)
    return std::nullopt;
  const auto words = static_cast<std::uint32_t>(depth / 8);
  const auto fp_words = static_cast<std::uint32_t>(fp_depth / 8);
  if (words > UnwindRule::kMaxCfaWords || fp_words > UnwindRule::kMaxSlotWords) return std::nullopt;
  return UnwindRule::Frame(is_from_sp ? UnwindRule::Kind::kFromSp : UnwindRule::Kind::kFromFp,
                           words, 1, fp_words);
}

}  // namespace

std::optional<UnwindRow> DecodedRow(const DecodedFrame& frame, std::vector<SpecialRule>& specials) {
  if (frame.fp.state == KeptRegister::kLost) return std::nullopt;
  UnwindRow row;
  row.special_register = SavedSpecial(frame);
  if (const std::optional<UnwindRule> plain = PlainRule(frame)) {
    row.rule = *plain;
    return row;
  }
  SpecialRule rule;
  if (!SetCfa(frame, rule)) return std::nullopt;
  rule.ra = LocationOf(frame, DecodedFrame::kAtCall);
  if (frame.fp.is_on_stack()) {
    if (!IsReached(frame, frame.fp.slot)) return std::nullopt;
    rule.fp = LocationOf(frame, frame.fp.slot);
  }
  row.rule = AddSpecialRule(rule, specials);
  return row;
}

}  // namespace strobe::internal
