#include "frame_instruction.h"

#include <cstdint>

#include "instruction_bytes.h"
#include "instruction_parts.h"

namespace strobe::internal {
namespace {

using Kind = FrameInstruction::Kind;
using Parts = InstructionParts;

constexpr unsigned kNoRegister = FrameInstruction::kNoRegister;

void Set(FrameInstruction& found, Kind kind, unsigned number, unsigned base, std::int32_t offset) {
  found.kind = kind;
  found.register_number = static_cast<std::uint8_t>(number);
  found.base_number = static_cast<std::uint8_t>(base);
  found.offset = offset;
}

// Of a 64-bit operand in memory.
void FindMemoryEffect(const Parts& parts, FrameInstruction& found) {
  const Parts::Memory memory = parts.memory();
  const bool is_based = memory.base != kNoRegister && !memory.has_index;
  switch (parts.opcode()) {
    case 0x8D:
      if (is_based) Set(found, Kind::kMove, parts.reg(), memory.base, memory.displacement);
      if (memory.is_relative)
        Set(found, Kind::kAddress, parts.reg(), kNoRegister, memory.displacement);
      break;
    case 0x89:
      if (is_based) Set(found, Kind::kStore, parts.reg(), memory.base, memory.displacement);
      break;
    case 0x8B:
      if (is_based) Set(found, Kind::kLoad, parts.reg(), memory.base, memory.displacement);
      break;
    default: break;
  }
}

// Of registers of 64 bits.
void FindRegisterEffect(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  const unsigned operand = parts.operand();
  const bool is_sum = parts.extension() == 0;
  switch (opcode) {
    case 0x81:
    case 0x83: {
      const std::int32_t amount = parts.Last(opcode == 0x83 ? 1 : 4);
      if ((is_sum || parts.extension() == 5) && amount != INT32_MIN)
        Set(found, Kind::kMove, operand, operand, is_sum ? amount : -amount);
      break;
    }
    case 0x89: Set(found, Kind::kMove, operand, parts.reg(), 0); break;
    case 0x8B: Set(found, Kind::kMove, parts.reg(), operand, 0); break;
    case 0x01:
    case 0x03:
      Set(found, Kind::kOther, opcode == 0x01 ? operand : parts.reg(),
          opcode == 0x01 ? parts.reg() : operand, 0);
      found.adds_base = true;
      break;
    default: break;
  }
}

// movzx and movsx of 16 bits, and movsxd, from where an index counts.
void FindEntry(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  const bool is_entry = parts.map == 2 ? opcode == 0xB7 || opcode == 0xBF
                                       : parts.map == 1 && opcode == 0x63 && parts.has_64_bits();
  if (!is_entry) return;
  const Parts::Memory memory = parts.memory();
  if (memory.base == kNoRegister || !memory.has_index) return;
  Set(found, Kind::kOther, parts.reg(), memory.base, memory.displacement);
  found.loads_entry = true;
}

// Pushes, pops, and what goes elsewhere. True if the instruction is one of them.
bool FindTransfer(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  const auto is = [&](Kind kind, std::int32_t offset = 0, unsigned number = kNoRegister) {
    Set(found, kind, number, kNoRegister, offset);
    return true;
  };
  const unsigned operand = parts.has_register_operand() ? parts.operand() : kNoRegister;
  if (opcode >= 0x50 && opcode <= 0x5F)
    return is(opcode < 0x58 ? Kind::kPush : Kind::kPop, 0, parts.opcode_register());
  if (opcode >= 0x70 && opcode <= 0x7F) return is(Kind::kBranch, parts.Last(1));
  switch (opcode) {
    case 0x68:
    case 0x6A:
    case 0x9C: return is(Kind::kPush);
    case 0x9D: return is(Kind::kPop);
    case 0x8F: return is(Kind::kPop, 0, operand);
    case 0xC2:
    case 0xC3: return is(opcode == 0xC3 ? Kind::kReturn : Kind::kInvalid);
    case 0xC9: return is(Kind::kLeave);
    case 0xCC:
    case 0xF4: return is(Kind::kEnd);
    case 0xE0:
    case 0xE1:
    case 0xE2:
    case 0xE3: return is(Kind::kBranch, parts.Last(1));
    case 0xE8:
      // A call of the next instruction is made for the address that it leaves.
      found.has_target = parts.Last(4) != 0;
      return found.has_target ? is(Kind::kCall, parts.Last(4)) : is(Kind::kPush);
    case 0xE9: return is(Kind::kJump, parts.Last(4));
    case 0xEB: return is(Kind::kJump, parts.Last(1));
    case 0xC7: return parts.modrm() == 0xF8 && is(Kind::kBranch, parts.Last(4));  // xbegin
    case 0xC8:
    case 0xCA:
    case 0xCB:
    case 0xCF: return is(Kind::kInvalid);  // enter, and returns that compilers do not write
    default: break;
  }
  if (opcode != 0xFF) return false;
  if (parts.extension() == 2) return is(Kind::kCall);
  if (parts.extension() == 4) return is(Kind::kJumpThrough, 0, operand);
  if (parts.extension() == 6) return is(Kind::kPush);
  return parts.extension() > 2 ? is(Kind::kInvalid) : false;
}

// Without a vector's prefix.
void FindEffect(const Parts& parts, FrameInstruction& found) {
  const std::uint8_t opcode = parts.opcode();
  found.kind = Kind::kOther;
  FindEntry(parts, found);
  if (parts.map == 1) {
    if (FindTransfer(parts, found)) {
      // With a prefix of 16 bits these move another number of bytes.
      if (parts.has_16_bits && found.kind != Kind::kReturn) found.kind = Kind::kInvalid;
      return;
    }
    if (parts.has_64_bits() && !parts.has_16_bits)
      parts.has_register_operand() ? FindRegisterEffect(parts, found)
                                   : FindMemoryEffect(parts, found);
    found.is_nothing = opcode == 0x90 && (parts.rex & 1) == 0 && !parts.repeats;
  } else if (parts.map == 2) {
    if (opcode >= 0x80 && opcode <= 0x8F) {
      found.kind = Kind::kBranch;
      found.offset = parts.Last(4);
    } else if (opcode == 0x0B || opcode == 0xB9 || opcode == 0xFF) {
      found.kind = Kind::kEnd;
    }
    found.is_nothing = opcode == 0x1F;
  }
}

}  // namespace

FrameInstruction DecodeFrameInstruction(std::span<const std::uint8_t> code) {
  FrameInstruction found;
  const std::size_t bytes = InstructionBytes(code);
  if (bytes == 0) return found;
  const Parts parts = SplitInstruction(code.first(bytes));
  found.kind = Kind::kOther;
  found.bytes = static_cast<std::uint8_t>(bytes);
  found.written = WrittenRegisters(parts);
  if (!parts.is_vector) FindEffect(parts, found);
  return found;
}

}  // namespace strobe::internal
