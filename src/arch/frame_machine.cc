#include "frame_machine.h"

#include <algorithm>
#include <bit>

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

constexpr unsigned kRsp = X86_64Encoding::kRsp;
constexpr unsigned kRbp = X86_64Encoding::kRbp;
constexpr unsigned kRbx = X86_64Encoding::kRbx;

FramePlace Meet(FramePlace a, FramePlace b) { return a == b ? a : FramePlace(); }

// Merges two kept registers of paths that meet.
KeptRegister Meet(const KeptRegister& a, const KeptRegister& b) {
  if (a == b) return a;
  const bool is_on_stack = a.slot.is_in_frame() && a.slot == b.slot &&
                           a.state != KeptRegister::kLost && b.state != KeptRegister::kLost;
  if (is_on_stack)
    return {a.is_in_register() && b.is_in_register() ? KeptRegister::kBoth : KeptRegister::kOnStack,
            a.slot};
  if (a.is_in_register() && b.is_in_register()) return {};
  return {KeptRegister::kLost, {}};
}

// Its word has been overwritten.
void Release(KeptRegister& kept) {
  kept = {kept.is_in_register() ? KeptRegister::kInRegister : KeptRegister::kLost, {}};
}

// Its register has been overwritten.
void Lose(KeptRegister& kept) {
  kept.state = kept.is_on_stack() ? KeptRegister::kOnStack : KeptRegister::kLost;
}

void ForgetLink(DecodedFrame& frame) { frame.link = frame.link_place = {}; }

// The stack pointer is the anchor from here on, so nothing else is known by the one before.
void Anchor(DecodedFrame& frame) {
  constexpr std::uint32_t kBase = FramePlace::kAnchor;
  for (FramePlace& place : frame.places) {
    if (place.base == kBase) place = {};
  }
  if (frame.link.base == kBase) ForgetLink(frame);
  for (KeptRegister* const kept : {&frame.fp, &frame.special}) {
    if (kept->slot.base == kBase) Release(*kept);
  }
  frame.places[kRsp] = {FramePlace::kAnchor, 0};
}

}  // namespace

FramePlace FramePlace::At(std::int64_t distance) const {
  const std::int64_t sum = offset + distance;
  const std::int64_t limit = base == kCode ? kMaxOffset * 8 : kMaxOffset;
  if (base == kUnknown || sum < -limit || sum > limit) return {};
  if (base > kCode && distance != 0) return {};
  return {base, static_cast<std::int32_t>(sum)};
}

DecodedFrame Meet(const DecodedFrame& a, const DecodedFrame& b) {
  DecodedFrame met = a;
  for (std::size_t i = 0; i < met.places.size(); ++i)
    met.places[i] = Meet(a.places[i], b.places[i]);
  met.fp = Meet(a.fp, b.fp);
  met.special = Meet(a.special, b.special);
  if (a.link != b.link || a.link_place != b.link_place) ForgetLink(met);
  if (!met.sp().is_in_frame()) Anchor(met);
  return met;
}

bool IsSame(const DecodedFrame& a, const DecodedFrame& b) {
  const auto is_same = [](FramePlace left, FramePlace right) {
    return left == right || (!left.is_in_frame() && !right.is_in_frame());
  };
  if (a.sp() != b.sp() || !is_same(a.places[kRbp], b.places[kRbp]) || a.fp != b.fp ||
      a.special != b.special)
    return false;
  return a.sp().base == FramePlace::kCfa ||
         (std::equal(a.places.begin(), a.places.end(), b.places.begin(), is_same) &&
          a.link == b.link && a.link_place == b.link_place);
}

void FrameMachine::Execute(const FrameInstruction& instruction, std::uint32_t next) {
  const unsigned number = instruction.register_number;
  const auto based = [&] { return PlaceOf(instruction.base_number).At(instruction.offset); };
  switch (instruction.kind) {
    case Kind::kPush: Push(number); break;
    case Kind::kPop: Pop(number); break;
    case Kind::kMove: SetRegister(number, based()); break;
    case Kind::kLeave:
      SetSp(PlaceOf(kRbp));
      Pop(kRbp);
      break;
    case Kind::kStore: Store(number, based()); break;
    case Kind::kLoad: Load(number, based()); break;
    case Kind::kAddress:
      SetRegister(number,
                  FramePlace{FramePlace::kCode, 0}.At(std::int64_t{next} + instruction.offset));
      break;
    case Kind::kOther: ExecuteOther(instruction); break;
    case Kind::kBranch: Write(instruction.written); break;
    default: break;
  }
}

KeptRegister* FrameMachine::KeptOf(unsigned number) {
  return number == kRbp ? &frame_.fp : number == kRbx ? &frame_.special : nullptr;
}

void FrameMachine::SetSp(FramePlace place) {
  if (!place.is_in_frame()) return Anchor(frame_);
  const FramePlace before = frame_.sp();
  PlaceOf(kRsp) = place;
  // What lies below the stack pointer may be overwritten by the next push.
  const auto is_below = [&](FramePlace slot) {
    return slot.base == place.base ? slot.offset < place.offset : slot.base == FramePlace::kAnchor;
  };
  const bool has_risen = place.base != before.base || place.offset > before.offset;
  if (!has_risen) return;
  if (is_below(frame_.link)) ForgetLink(frame_);
  for (KeptRegister* const kept : {&frame_.fp, &frame_.special}) {
    if (is_below(kept->slot)) Release(*kept);
  }
}

void FrameMachine::SetRegister(unsigned number, FramePlace place) {
  if (number == kRsp) return SetSp(place);
  Write(SetOf(number));
  PlaceOf(number) = place;
}

void FrameMachine::Store(unsigned number, FramePlace slot) {
  if (!slot.is_in_frame()) return;
  KeptRegister* const own = number < kX86_64GeneralRegisters ? KeptOf(number) : nullptr;
  for (KeptRegister* const kept : {&frame_.fp, &frame_.special}) {
    const bool is_same = kept == own && kept->is_in_register();
    if (kept->slot == slot && !is_same) Release(*kept);
  }
  if (frame_.link == slot) ForgetLink(frame_);
  const bool is_own =
      slot.base == FramePlace::kAnchor || slot.offset < DecodedFrame::kAtCall.offset;
  if (!is_own || number >= kX86_64GeneralRegisters) return;
  if (own != nullptr && own->state == KeptRegister::kInRegister) *own = {KeptRegister::kBoth, slot};
  const FramePlace place = PlaceOf(number);
  if (place.base != FramePlace::kCfa || frame_.link.base == FramePlace::kAnchor) return;
  frame_.link = slot;
  frame_.link_place = place;
}

void FrameMachine::Load(unsigned number, FramePlace slot) {
  const bool is_known = slot.is_in_frame();
  const FramePlace place = is_known && slot == frame_.link ? frame_.link_place : FramePlace();
  KeptRegister* const kept = KeptOf(number);
  const bool gives_back = is_known && kept != nullptr && kept->is_on_stack() && kept->slot == slot;
  SetRegister(number, place);
  if (gives_back) kept->state = KeptRegister::kBoth;
}

void FrameMachine::Push(unsigned number) {
  const FramePlace before = number == kRsp ? frame_.sp() : FramePlace();
  SetSp(frame_.sp().At(-8));
  Store(number, frame_.sp());
  // What it pushes of the stack pointer is the one before.
  if (number == kRsp && frame_.link == frame_.sp()) frame_.link_place = before;
}

void FrameMachine::Pop(unsigned number) {
  const FramePlace slot = frame_.sp();
  if (number < kX86_64GeneralRegisters) Load(number, slot);
  if (number != kRsp) SetSp(slot.At(8));
}

void FrameMachine::ExecuteOther(const FrameInstruction& instruction) {
  const unsigned number = instruction.register_number;
  const FramePlace base = instruction.base_number < kX86_64GeneralRegisters
                              ? PlaceOf(instruction.base_number)
                              : FramePlace();
  FramePlace result;
  if (instruction.loads_entry && base.base == FramePlace::kCode) result.base = FramePlace::kEntry;
  if (instruction.adds_base) {
    const auto is = [&](std::uint32_t a, std::uint32_t b) {
      return PlaceOf(number).base == a && base.base == b;
    };
    const bool is_target =
        is(FramePlace::kEntry, FramePlace::kCode) || is(FramePlace::kCode, FramePlace::kEntry);
    if (is_target) result.base = FramePlace::kTarget;
  }
  Write(instruction.written);
  if (result.base != FramePlace::kUnknown && number != kRsp) PlaceOf(number) = result;
}

void FrameMachine::Write(RegisterSet written) {
  for (unsigned rest = written; rest != 0; rest &= rest - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(rest));
    if (number == kRsp) {
      Anchor(frame_);
    } else {
      PlaceOf(number) = {};
      if (KeptRegister* const kept = KeptOf(number)) Lose(*kept);
    }
  }
}

}  // namespace strobe::internal
