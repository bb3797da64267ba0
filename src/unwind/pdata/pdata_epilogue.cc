#include "pdata_epilogue.h"

#include "arch/epilogue_instruction.h"
#include "strobe/arch/x86_64.h"

namespace strobe::internal {
namespace {

void Shift(std::optional<std::int64_t>& offset, std::int64_t by) {
  if (offset) *offset += by;
}

// Makes `frame`, the frame after an instruction, the frame before it.
void Undo(const EpilogueInstruction& instruction, PdataFrame& frame) {
  const auto pop = [&](unsigned number) {
    frame.offset += 8;
    Shift(frame.fp, 8);
    Shift(frame.special, 8);
    // The caller sees the value of the last pop.
    if (number == X86_64Encoding::kRbp && !frame.fp) frame.fp = 0;
    if (number == X86_64Encoding::kRbx && !frame.special) frame.special = 0;
  };
  const auto release = [&](unsigned base, std::int64_t by) {
    frame.base = base;
    frame.offset += by;
    Shift(frame.fp, by);
    Shift(frame.special, by);
  };
  if (instruction.kind == EpilogueInstruction::Kind::kPop) pop(instruction.register_number);
  if (instruction.kind == EpilogueInstruction::Kind::kRelease)
    release(instruction.register_number, instruction.offset);
  if (instruction.kind == EpilogueInstruction::Kind::kLeave) {
    pop(X86_64Encoding::kRbp);
    release(X86_64Encoding::kRbp, 0);
  }
}

bool Releases(const EpilogueInstruction& instruction) {
  return instruction.kind == EpilogueInstruction::Kind::kRelease ||
         instruction.kind == EpilogueInstruction::Kind::kLeave;
}
bool CanBegin(const EpilogueInstruction& instruction) {
  return Releases(instruction) || instruction.kind == EpilogueInstruction::Kind::kPop;
}

}  // namespace

std::optional<Epilogue> MatchEpilogue(std::span<const std::uint8_t> function, std::size_t begin) {
  using Kind = EpilogueInstruction::Kind;
  // This is called for each instruction of a program, and few begin an epilogue. So the others get
  // no more work than this.
  if (!CanBegin(DecodeEpilogueInstruction(function, begin))) return std::nullopt;
  std::array<EpilogueInstruction, kMaxEpilogueInstructions> instructions;
  Epilogue epilogue;
  bool has_left = false;  // by a jump: the rest is an epilogue that begins elsewhere
  std::size_t total = 0;
  for (std::size_t at = begin; total < instructions.size(); ++total) {
    const EpilogueInstruction instruction = DecodeEpilogueInstruction(function, at);
    if (instruction.kind == Kind::kOther || (total != 0 && Releases(instruction)))
      return std::nullopt;
    instructions[total] = instruction;
    if (!has_left) {
      epilogue.steps[epilogue.count++].position = at;
      epilogue.end = at + instruction.bytes;
    }
    if (instruction.kind == Kind::kExit) break;
    has_left |= instruction.kind == Kind::kJumpWithin;
    at = instruction.kind == Kind::kJumpWithin ? static_cast<std::size_t>(instruction.offset)
                                               : at + instruction.bytes;
  }
  if (total == instructions.size()) return std::nullopt;
  PdataFrame frame;
  for (std::size_t i = total + 1; i-- > 0;) {
    Undo(instructions[i], frame);
    if (i < epilogue.count) epilogue.steps[i].frame = frame;
  }
  return epilogue;
}

}  // namespace strobe::internal
