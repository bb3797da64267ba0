#include "frame_machine.h"

#include <cstdlib>

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;

// The depth of what lies `offset` above `depth`.
std::int32_t Below(std::int32_t depth, std::int32_t offset) {
  return depth == DecodedFrame::kNot || std::abs(std::int64_t{offset}) > FrameMachine::kMaxDepth
             ? DecodedFrame::kNot
             : depth - offset;
}

void Save(KeptRegister& kept, std::int32_t depth) {
  if (kept.state == KeptRegister::kInRegister && depth > 8) kept = {KeptRegister::kBoth, depth};
}

void Lose(KeptRegister& kept) {
  kept.state = kept.slot != 0 && kept.state != KeptRegister::kLost ? KeptRegister::kOnStack
                                                                   : KeptRegister::kLost;
}

// Merges two kept registers of paths that meet.
KeptRegister Meet(const KeptRegister& a, const KeptRegister& b) {
  if (a == b) return a;
  const bool is_on_stack = a.slot != 0 && a.slot == b.slot && a.state != KeptRegister::kLost &&
                           b.state != KeptRegister::kLost;
  if (is_on_stack)
    return {a.is_in_register() && b.is_in_register() ? KeptRegister::kBoth : KeptRegister::kOnStack,
            a.slot};
  if (a.is_in_register() && b.is_in_register()) return {};
  return {KeptRegister::kLost, 0};
}

}  // namespace

DecodedFrame Meet(const DecodedFrame& a, const DecodedFrame& b) {
  return {.sp_depth = a.sp_depth == b.sp_depth ? a.sp_depth : DecodedFrame::kNot,
          .fp_depth = a.fp_depth == b.fp_depth ? a.fp_depth : DecodedFrame::kNot,
          .fp = Meet(a.fp, b.fp),
          .special = Meet(a.special, b.special)};
}

void FrameMachine::Execute(const FrameInstruction& instruction) {
  switch (instruction.kind) {
    case Kind::kPush:
      MoveSp(-8);
      if (KeptRegister* kept = KeptOf(instruction.register_number)) Save(*kept, frame_.sp_depth);
      break;
    case Kind::kPop: Pop(instruction.register_number); break;
    case Kind::kMoveSp: MoveSp(instruction.offset); break;
    case Kind::kSpToRegister: TakeSp(instruction); break;
    case Kind::kFpToSp: SetDepth(Below(frame_.fp_depth, instruction.offset)); break;
    case Kind::kLeave:
      SetDepth(frame_.fp_depth);
      Pop(X86_64Encoding::kRbp);
      break;
    case Kind::kStore:
      if (KeptRegister* kept = KeptOf(instruction.register_number))
        Save(*kept, Depth(instruction.offset));
      break;
    case Kind::kLoad: Restore(instruction.register_number, Depth(instruction.offset)); break;
    case Kind::kAddress:
    case Kind::kOther: Write(instruction.written); break;
    default: break;
  }
}

KeptRegister* FrameMachine::KeptOf(unsigned number) {
  return number == X86_64Encoding::kRbp   ? &frame_.fp
         : number == X86_64Encoding::kRbx ? &frame_.special
                                          : nullptr;
}

std::int32_t FrameMachine::Depth(std::int32_t offset) const {
  return Below(frame_.sp_depth, offset);
}

void FrameMachine::SetDepth(std::int32_t depth) {
  frame_.sp_depth = depth >= 0 && depth <= kMaxDepth ? depth : DecodedFrame::kNot;
}

void FrameMachine::MoveSp(std::int32_t offset) {
  SetDepth(Depth(offset));
  if (offset > 0) {
    Release(frame_.fp);
    Release(frame_.special);
  }
}

void FrameMachine::Release(KeptRegister& kept) const {
  if (frame_.sp_depth == DecodedFrame::kNot || kept.slot <= frame_.sp_depth) return;
  kept = {kept.is_in_register() ? KeptRegister::kInRegister : KeptRegister::kLost, 0};
}

void FrameMachine::Pop(unsigned number) {
  Restore(number, frame_.sp_depth);
  if (number != X86_64Encoding::kRsp) MoveSp(8);
}

void FrameMachine::TakeSp(const FrameInstruction& instruction) {
  const std::int32_t depth = Depth(instruction.offset);
  Write(static_cast<std::uint16_t>(1u << instruction.register_number));
  if (instruction.register_number == X86_64Encoding::kRbp && depth > 0) frame_.fp_depth = depth;
}

void FrameMachine::Restore(unsigned number, std::int32_t depth) {
  if (number == X86_64Encoding::kRsp)
    return static_cast<void>(frame_.sp_depth = DecodedFrame::kNot);
  KeptRegister* const kept = KeptOf(number);
  if (kept == nullptr) return;
  if (number == X86_64Encoding::kRbp) frame_.fp_depth = DecodedFrame::kNot;
  if (kept->slot != 0 && kept->slot == depth && kept->state != KeptRegister::kLost) {
    kept->state = KeptRegister::kBoth;
  } else {
    Lose(*kept);
  }
}

void FrameMachine::Write(std::uint16_t written) {
  if ((written >> X86_64Encoding::kRsp & 1) != 0) frame_.sp_depth = DecodedFrame::kNot;
  if ((written >> X86_64Encoding::kRbx & 1) != 0) Lose(frame_.special);
  if ((written >> X86_64Encoding::kRbp & 1) == 0) return;
  frame_.fp_depth = DecodedFrame::kNot;
  Lose(frame_.fp);
}

}  // namespace strobe::internal
